"""What a profile and drift cost beside plain DuckDB: `make bench-drift`.

Two batches of rows with 17 numbers, texts, a time and a label. In each round, in random order:

- *ours*: the profile of the new batch in the reference's cells (histograms for each day and label,
  moments, correlations, ranges), and drift with thresholds from the reference's past;
- *histogram*: the plain DuckDB way over the new batch, `histogram(column, edges)` of the 17 numbers
  with the same edges, counts by value of texts and label, and the population stability index of
  the numbers against the reference's kept counts;
- *profile*: of the new batch, with cells of its own (what is kept for next time);
- *aggregates*: one DuckDB query for count, approx_count_distinct, min, max, avg, stddev, corr with
  the label and a histogram of every number, and the counts of every text.

Figures: drift_vs_histogram (ours / histogram), profile_vs_aggregates, profile_seconds,
drift_seconds (of the comparison alone).
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from benchmarks.reporting import last_line, table, words_of
from components.common.labels import Label
from components.common.settings import ProjectSettings
from components.common.tables import LocalObject, add_view, open_tables, quoted
from components.validate_data.distances import psi
from components.validate_data.drift import drift_from
from components.validate_data.profile import Profile
from components.validate_data.take_profile import take_profile

NUMBERS = [f"n{number}" for number in range(17)]
TEXTS = ["city", "product"]
SETTINGS = ProjectSettings.model_validate(
    {
        "name": "bench",
        "task": {"path": "task:Task"},
        "data": {"source": "data", "row_key": ["id"], "time_column": "at"},
        "decision": {"retraining_noise": 0},
    }
)


def write_rows(path: Path, *, rows: int, first_day: int, days: int) -> None:
    """Write a Parquet file of rows in the order of their time."""
    numbers = ", ".join(
        f"(random() + random() + random()) * {2 + i} + sin({i} + id) AS {name}"
        if i % 3
        else f"floor(random() * {5 * (i + 1)}) AS {name}"
        for i, name in enumerate(NUMBERS)
    )
    at = f"make_timestamptz(1735689600000000 + {first_day} * 86400000000 + id * ({days} * "
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            f"COPY (SELECT id, {at}86400000000 // {rows})) AS at, {numbers}, "
            "'city ' || floor(random() * random() * 300)::INT AS city, "
            "'product ' || floor(random() * 40)::INT AS product, "
            f"(random() < 0.3)::DOUBLE AS label FROM range({rows}) t(id)) "
            f"TO '{path}' (FORMAT parquet)"
        )


def histograms(
    connection: duckdb.DuckDBPyConnection, edges: Profile, kept: list[dict[float, int]]
) -> tuple[list[dict[float, int]], list[float]]:
    """The plain way: count each column, then take the index of each number.

    Args:
        kept: The reference's histograms; empty while they are made.
    """
    cuts = {n: edges.columns[n].cells.edges[4::5].tolist() for n in NUMBERS}
    wanted = ", ".join(f"histogram({quoted(n)}, {cut})" for n, cut in cuts.items())
    view = "now" if kept else "before"
    now = list(connection.execute(f"SELECT {wanted} FROM {view}").fetchall()[0])
    for name in (*TEXTS, "label"):
        connection.execute(f"SELECT {name}, count(*) FROM {view} GROUP BY {name}").fetchall()
    return now, [
        float(psi([a.get(e, 0) for e in b], list(b.values())))
        for a, b in zip(now, kept, strict=bool(kept))
    ]


def aggregates(connection: duckdb.DuckDBPyConnection, edges: Profile) -> None:
    """The plain way to the numbers of a profile."""
    parts = []
    for n in NUMBERS:
        cut = edges.columns[n].cells.edges[4::5].tolist()
        parts.append(
            f"count({n}), approx_count_distinct({n}), min({n}), max({n}), avg({n}), stddev({n}), "
            f"corr({n}, label), histogram({n}, {cut})"
        )
    parts += [f"count({n}), approx_count_distinct({n}), histogram({n})" for n in TEXTS]
    connection.execute(f"SELECT {', '.join(parts)} FROM now").fetchall()


def main() -> None:
    """Run the rounds and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=5, help="rounds")
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of each batch")
    arguments = parser.parse_args()
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for view, first in (("before", 0), ("now", 180)):
            write_rows(folder / view, rows=arguments.rows, first_day=first, days=180)
        with open_tables(SETTINGS.data, readable=[folder], scratch=folder / "s") as connection:
            for view in ("before", "now"):
                add_view(connection, view, [LocalObject(view, folder / view, arguments.rows)])
            race(connection, arguments.count, seconds)
    lines = [[name, words_of(taken)] for name, taken in seconds.items()]
    print(table([f"{arguments.rows:,} rows", "seconds, median (range)"], lines))
    print(f"peak memory: {peak_gib():.2f} GiB", file=sys.stderr)
    ours, plain = seconds["ours"], seconds["histogram"]
    figures = {
        "drift_vs_histogram": [a / b for a, b in zip(ours, plain, strict=True)],
        "profile_vs_aggregates": [
            a / b for a, b in zip(seconds["profile"], seconds["aggregates"], strict=True)
        ],
        "profile_seconds": seconds["profile"],
        "drift_seconds": seconds["comparison"],
    }
    print(last_line("drift", figures))


LABEL = Label("binary", ("label",), lambda frame: frame["label"].to_numpy())


def race(
    connection: duckdb.DuckDBPyConnection, count: int, seconds: dict[str, list[float]]
) -> None:
    """Time every contestant in each round."""

    def profile(view: str, edges: Profile | None = None) -> Profile:
        return take_profile(connection, view, settings=SETTINGS, label=LABEL, edges=edges)

    before = profile("before")
    kept, _ = histograms(connection, before, [])

    def ours() -> None:
        now = profile("now", before)
        began = time.perf_counter()
        drift_from(now, before, settings=SETTINGS)
        seconds.setdefault("comparison", []).append(time.perf_counter() - began)

    racing: list[tuple[str, Callable[[], object]]] = [
        ("ours", ours),
        ("histogram", lambda: histograms(connection, before, kept)),
        ("profile", lambda: profile("now")),
        ("aggregates", lambda: aggregates(connection, before)),
    ]
    ours()  # once to warm up: pages, imports
    seconds.clear()
    for number in range(count):
        for name, run in random.Random(number).sample(racing, len(racing)):
            began = time.perf_counter()
            run()
            seconds.setdefault(name, []).append(time.perf_counter() - began)
        print(f"round {number + 1} of {count}", file=sys.stderr)


def peak_gib() -> float:
    """Most memory that this process has had."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    main()
