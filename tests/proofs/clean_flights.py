"""Let clean months of flights arrive: none may be stopped.

    python -m tests.proofs.clean_flights         # every month of 2013, and 200 drawn ones
    python -m tests.proofs.clean_flights 20      # fewer drawn ones

First each month from February to December arrives as it was, after all before it, with every check
on. Then months are drawn: for each date of a month a day of the same weekday, with replacement,
after the months before it. (Drawn from all days, a month may be without a single Tuesday: 16 of 200
were stopped, each for its weekdays, and rightly.) The 32 rows of 12 February whose wind of 1,048
mph the row rule puts aside are left out: that day drawn twice would be over the budget. Drawn
months go without the checks that train models, which warn and cannot stop a run. The last line of
stdout is one JSON object: `months` and how many of them were `months_stopped`, `drawn` and
`drawn_stopped`, and how many drew a warning (`months_warned`, `drawn_warned`). What was found is
told on stderr.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tests.examples.flights_example import EXAMPLE, prepare
from tests.proofs.reporting import tell
from tests.small_project.data_steps import run_data_steps

MONTHS = range(2, 13)
DRAWN_FROM = range(2, 7)  # with a past of one to five months: what is short knows least
DRAWN = 200
UNTRAINED = ["validation.levels={label_noise: off, joint_shift: off}"]


class Project:
    """The flights, validated up to a month, to let the next one arrive again and again."""

    def __init__(self, folder: Path, rows: pd.DataFrame) -> None:
        self.folder, self.kept, self.rows = folder / "project", folder / "kept", rows
        self.folder.mkdir(parents=True)
        for name in ("task.py", "evertrain.yaml", "expectations.json"):
            shutil.copy(EXAMPLE / name, self.folder)
        self.settle(1, rows[_month(rows) == 1])

    def settle(self, month: int, rows: pd.DataFrame) -> tuple[str, str]:
        """Let a month arrive for good."""
        said = self.arrive(month, rows)
        shutil.rmtree(self.kept, ignore_errors=True)
        shutil.copytree(self.folder, self.kept)
        return said

    def arrive(
        self, month: int, rows: pd.DataFrame, settings: Sequence[str] = ()
    ) -> tuple[str, str]:
        """Let a month arrive after those that have settled; what stopped it, and what warned."""
        if self.kept.exists():
            shutil.rmtree(self.folder)
            shutil.copytree(self.kept, self.folder)
        shutil.rmtree(self.folder / ".evertrain" / "store" / "runs", ignore_errors=True)
        table = pa.Table.from_pandas(rows, schema=prepare.SCHEMA, preserve_index=False)
        (self.folder / "data").mkdir(exist_ok=True)
        pq.write_table(table, self.folder / "data" / f"flights-2013-{month:02}.parquet")
        with contextlib.redirect_stderr(io.StringIO()):
            records = run_data_steps(self.folder, *settings)
        stopped = "; ".join(r.reason for r in records.values() if r.status != "done")
        findings = records["validate_data"].figures.get("findings", [])
        return stopped, ", ".join(sorted({f"{f['check']} {f['column']}".strip() for f in findings}))


def prove(drawn: int, folder: Path, *, months: Sequence[int] = MONTHS) -> dict[str, int]:
    """Let months arrive and return the figures.

    Args:
        drawn: Months that are drawn, shared out among those that they are drawn from.
        folder: For the project.
        months: That arrive as they were, each after all before it.
    """
    rows = prepare.build(prepare.source_folder())
    project = Project(folder, rows)
    found: list[tuple[str, bool, bool]] = []
    for month in months:
        own = rows[_month(rows) == month]
        for number in (
            range(DRAWN_FROM.index(month), drawn, len(DRAWN_FROM)) if month in DRAWN_FROM else ()
        ):
            random = np.random.default_rng([month, number])
            said = project.arrive(month, draw(own[~(own["wind_speed"] > 150)], random), UNTRAINED)
            found.append(_told("drawn", month, said))
        found.append(_told("months", month, project.settle(month, own)))
    figures: dict[str, int] = {}
    for kind in ("months", "drawn"):
        own_kind = [one for one in found if one[0] == kind]
        figures[kind] = len(own_kind)
        figures[f"{kind}_stopped"] = sum(stopped for _, stopped, _ in own_kind)
        figures[f"{kind}_warned"] = sum(warned for _, _, warned in own_kind)
    return figures


def draw(month: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    """For each date of a month the flights of a day of the same weekday, drawn with replacement."""
    weekdays = month.groupby("date")["weekday"].first()
    parts = []
    for date, weekday in weekdays.items():
        source = str(random.choice(weekdays.index[weekdays == weekday].to_numpy()))
        part = month[month["date"] == source]
        later = pd.Timestamp(str(date)) - pd.Timestamp(source)
        parts.append(part.assign(date=date, time_hour=part["time_hour"] + later))
    return pd.concat(parts, ignore_index=True)


def _month(rows: pd.DataFrame) -> Any:
    return rows["date"].str[5:7].astype(int)


def _told(kind: str, month: int, said: tuple[str, str]) -> tuple[str, bool, bool]:
    stopped, warned = said
    if stopped or warned:
        words = f"stopped: {stopped}" if stopped else f"warned: {warned}"
        print(f"{kind}, {month}: {words}", file=sys.stderr, flush=True)
    return kind, bool(stopped), bool(warned)


def main() -> int:
    """Print the figures; 0 if no month and at most one drawn month in 100 was stopped."""
    parser = argparse.ArgumentParser(description="Let clean months of flights arrive.")
    parser.add_argument(
        "number", nargs="?", type=int, default=DRAWN, metavar="N", help="drawn months"
    )
    parser.add_argument("--count", type=int, help="the same as N")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="clean-flights-") as folder:
        figures = prove(arguments.count or arguments.number, Path(folder))
    tell("clean_flights", figures)
    return int(figures["months_stopped"] > 0 or figures["drawn_stopped"] > figures["drawn"] / 100)


if __name__ == "__main__":
    sys.exit(main())
