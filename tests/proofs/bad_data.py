"""Spoil a feed in every way that the corpus names; each must be handled, and clean data must pass.

    python -m tests.proofs.bad_data         # every kind once, 200 clean months
    python -m tests.proofs.bad_data 5       # on five feeds

Each feed has three months that were validated and have a champion; then a fourth arrives, spoiled
in one way (tests/corruptions), or changed in a harmless way, or clean: bootstrapped from a clean
month by days. All checks are on. The last line of stdout is one JSON object: `kinds` of corruption
on all feeds, how many of them were `handled` as their row says, and `false_alarms`, how many of the
`clean` months and harmless changes stopped a run, or lost a row.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from tests.corruptions.benign import BENIGN, Benign, alarm
from tests.corruptions.catalogue import CORRUPTIONS
from tests.corruptions.clean_feed import LABEL_DELAY, Rows
from tests.corruptions.kinds import Corruption, Records, fault
from tests.corruptions.project import Feed, Template
from tests.proofs.reporting import tell

RESAMPLES = 200


def prove(
    feeds: int,
    folder: Path,
    *,
    resamples: int = RESAMPLES,
    corruptions: Sequence[Corruption] = CORRUPTIONS,
    benign: Sequence[Benign] = BENIGN,
    settings: Sequence[str] = (),
) -> dict[str, int]:
    """Spoil feeds in all ways and bring clean months, shared out among them; return the figures.

    Args:
        feeds: How many; each is spoilt in every way.
        folder: For them.
        resamples: Clean months in all.
        corruptions: The ways.
        benign: Harmless changes, made to each feed.
        settings: Of the project, as `key=value`.
    """
    figures = {"kinds": 0, "handled": 0, "clean": 0, "false_alarms": 0}
    for seed in range(feeds):
        with _silence():
            template = Template(folder / str(seed), seed)
        for corruption in corruptions:
            feed = template.arrive()
            corruption.spoil(feed)
            wrong = fault(corruption, _run(feed, settings))
            figures["kinds"] += 1
            figures["handled"] += not wrong
            _tell(f"feed {seed}: {corruption.family}, {corruption.name}", wrong)
        for case in [*benign, *_resampled(range(seed, resamples, feeds))]:
            feed = template.arrive()
            case.change(feed)
            wrong = alarm(case, feed, _run(feed, settings))
            figures["clean"] += 1
            figures["false_alarms"] += bool(wrong)
            _tell(f"feed {seed}: {case.name}", wrong)
    return figures


def resample(rows: Rows, random: np.random.Generator) -> Rows:
    """A clean month of days drawn with replacement from those of a month that have labels.

    The days of the result stand in the place of the month's own, the last ones without labels.
    """
    day = rows["ordered"].dt.day
    last = int(day.max())
    drawn = random.integers(1, last + 1 - LABEL_DELAY, last)
    parts = []
    for place, source in enumerate(drawn, start=1):
        part = rows[day == source]
        moved = part["ordered"] + pd.Timedelta(days=place - int(source))
        label = part["late"] if place <= last - LABEL_DELAY else np.nan
        parts.append(part.assign(ordered=moved, late=label))
    month = pd.concat(parts, ignore_index=True)
    return month.assign(id=np.arange(len(month), dtype=np.int64) + 9_000_000)


def _resampled(numbers: range) -> list[Benign]:
    def arrive(number: int) -> Benign:
        def change(feed: Feed) -> None:
            clean = feed.rows()
            month = resample(clean, np.random.default_rng([feed.seed, number]))
            case.more = len(month) - len(clean)
            feed.write(month)

        case = Benign(f"clean_month_{number}", change, why="clean")
        return case

    return [arrive(number) for number in numbers]


def _run(feed: Feed, settings: Sequence[str]) -> Records:
    with _silence():
        return feed.run(*settings)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Steps say on stderr why they stop: here they are meant to."""
    with contextlib.redirect_stderr(io.StringIO()):
        yield


def _tell(what: str, wrong: str) -> None:
    if wrong:
        print(f"{what}: {wrong}", file=sys.stderr, flush=True)


def main() -> int:
    """Print the figures; 0 if every kind was handled and at most one clean month in 100 was not."""
    parser = argparse.ArgumentParser(description="Spoil feeds and prove that each is handled.")
    parser.add_argument("number", nargs="?", type=int, default=1, metavar="N", help="feeds")
    parser.add_argument("--count", type=int, help="the same as N")
    parser.add_argument("--resamples", type=int, default=RESAMPLES, help="clean months")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bad-data-") as folder:
        feeds = arguments.count or arguments.number
        figures = prove(feeds, Path(folder), resamples=arguments.resamples)
    tell("bad_data", figures)
    clean = figures["false_alarms"] <= figures["clean"] / 100
    return 0 if clean and figures["handled"] == figures["kinds"] else 1


if __name__ == "__main__":
    sys.exit(main())
