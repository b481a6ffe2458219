"""validate_data beside plain DuckDB and beside GX on pandas: time, memory, growth with the rows.

    make bench-validate      # or: python -m benchmarks.validate --count 3
    python -m benchmarks.validate --part suite --large 2000000 --count 1     # small, while building

Rows of 20 columns in 8 Parquet files are held against 25 expectations. `--part step` measures the
whole step (row rules, suite, profile, drift of all rows from the month before, trust checks)
beside suite, profile and drift in DuckDB;
`--part suite` only row rules and suite. Each measurement is a process of its own, in random order
within its round: its wall time without imports, its CPU time (beside others on the
machine the better guide), and its peak memory.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import random
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

from benchmarks.reporting import last_line, table, words_of
from benchmarks.validate_peers import gx_on_pandas, plain_duckdb
from benchmarks.validate_project import hold_rows_against_suite, make_project, run_step
from benchmarks.validate_rows import write_rows

SMALL = 2_000_000  # what GX on pandas still does
LARGE = 20_000_000
LARGEST = 60_000_000
BEFORE = 1_000_000  # of the month before, from which drift is measured
Measured = tuple[float, float, float]  # seconds, GiB, seconds of CPU


def measure(contestant: str, part: str, folder: Path) -> Measured:
    """Run a contestant in this process."""
    files = sorted((folder / "data").iterdir())
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    _import(contestant, part)
    began, worked = time.perf_counter(), time.process_time()
    if contestant == "pandas":
        gx_on_pandas(files)
    elif contestant == "duckdb":
        plain_duckdb(files, folder / "spill", whole_step=part == "step")
    elif part == "step":
        run_step(folder)
    else:
        hold_rows_against_suite(folder)
    seconds, cpu = time.perf_counter() - began, time.process_time() - worked
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, cpu


def _import(contestant: str, part: str) -> None:
    """Import what is heavy before the clock starts: all but plain DuckDB take GX along."""
    if contestant != "duckdb":
        import great_expectations  # noqa: F401

        import components.validate_data.duckdb_metrics  # noqa: F401
    if contestant == "ours" and part == "step":
        import scipy.stats  # noqa: F401
        import sklearn.ensemble  # noqa: F401
        import torch  # noqa: F401


def measured_apart(contestant: str, part: str, folder: Path) -> Measured:
    """Run a contestant in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.validate", "--part", part,
         "--measure", contestant, str(folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"{contestant} on {folder.name} failed:\n{done.stderr[-2000:]}")
    seconds, memory, cpu = json.loads(done.stdout.splitlines()[-1])
    return seconds, memory, cpu


def rounds(
    turns: Sequence[tuple[str, Path]], part: str, count: int
) -> dict[tuple[str, str], list[Measured]]:
    """Measure each turn in each round; return by contestant and rows."""
    found: dict[tuple[str, str], list[Measured]] = {}
    for number in range(count):
        for contestant, folder in random.sample(list(turns), k=len(turns)):
            seconds, memory, cpu = measured_apart(contestant, part, folder)
            print(
                f"round {number + 1}: {contestant}, {folder.name} rows: "
                f"{seconds:.1f} s, {memory:.2f} GiB, {cpu:.1f} s of CPU",
                file=sys.stderr,
            )
            found.setdefault((contestant, folder.name), []).append((seconds, memory, cpu))
    return found


def growth(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Return the slope of time over rows, both as logarithms: 1 where it is linear."""
    x, y = [math.log(size) for size in sizes], [math.log(second) for second in seconds]
    middle_x, middle_y = sum(x) / len(x), sum(y) / len(y)
    products = [(a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True)]
    return sum(products) / sum((a - middle_x) ** 2 for a in x)


def main() -> None:
    """Print the table and the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=3, help="rounds")
    parser.add_argument("--part", choices=["step", "suite"], default="step")
    parser.add_argument("--small", type=int, default=SMALL, help="rows beside GX on pandas")
    parser.add_argument("--large", type=int, default=LARGE, help="rows beside plain DuckDB")
    parser.add_argument("--largest", type=int, default=LARGEST, help="rows for growth; 0: without")
    parser.add_argument("--measure", nargs=2, metavar=("CONTESTANT", "FOLDER"))
    given = parser.parse_args()
    if given.measure:
        contestant, folder = given.measure
        print(json.dumps(measure(contestant, given.part, Path(folder))))
        return
    sizes = sorted({given.small, given.large, given.largest} - {0})
    with tempfile.TemporaryDirectory(prefix="validate-") as place:
        folders = {size: Path(place, str(size)) for size in sizes}
        for size, folder in folders.items():
            write_rows(folder / "data", size, month=1)
            write_rows(folder / "before", BEFORE)
            make_project(folder, whole_step=given.part == "step")
        turns = [("ours", folder) for folder in folders.values()]
        turns += [("duckdb", folders[given.large]), ("pandas", folders[given.small])]
        found = rounds(turns, given.part, given.count)
    report(found, sizes, small=str(given.small), large=str(given.large))


def report(
    found: dict[tuple[str, str], list[Measured]], sizes: Sequence[int], *, small: str, large: str
) -> None:
    """Print what was measured; ratios are taken within a round."""
    lines = [
        [who, f"{int(rows):,}", *(words_of([m[which] for m in all_of]) for which in (0, 2, 1))]
        for (who, rows), all_of in sorted(found.items(), key=lambda item: int(item[0][1]))
    ]
    print(table(["contestant", "rows", "seconds", "seconds of CPU", "peak GiB"], lines))

    def ratios(rows: str, peer: str, which: int) -> list[float]:
        pairs = zip(found["ours", rows], found[peer, rows], strict=True)
        return [ours[which] / theirs[which] for ours, theirs in pairs]

    by_round = zip(*(found["ours", str(size)] for size in sizes), strict=True)
    figures = {
        "vs_duckdb_ratio": ratios(large, "duckdb", 0),
        "peak_gib": [memory for _, memory, _ in found["ours", large]],
        "vs_pandas_ratio": ratios(small, "pandas", 0),
        "vs_pandas_memory": ratios(small, "pandas", 1),
    }
    if len(sizes) > 1:
        figures["growth_exponent"] = [growth(sizes, [m[0] for m in each]) for each in by_round]
    print(last_line("validate", figures))


if __name__ == "__main__":
    main()
