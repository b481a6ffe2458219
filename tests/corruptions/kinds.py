"""What a corruption is, and whether what happened is what had to happen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from components.common.data_figures import Expectation, ValidateFigures
from components.common.data_settings import CheckName
from components.common.records import STEPS, StepRecord
from tests.corruptions.clean_feed import Rows
from tests.corruptions.project import NEW, Feed

Outcome = Literal["blocked", "quarantined", "warned"]
Records = dict[str, StepRecord]
DATA_STEPS = STEPS[:3]
TRAINED: tuple[CheckName, ...] = ("label_noise", "joint_shift")  # two thirds of a run's seconds
OBJECT = "2025-04.parquet"  # where the new month is


@dataclass(frozen=True)
class Check:
    """The check that must notice.

    Attributes:
        step: Where it is.
        kind: `step`: the step itself stops; otherwise what of the suite, the row rules or the
            other checks notices.
        name: Of the expectation, the row rule, or the finding's check.
        column: That it is about; empty: the rows as a whole.
        count: Rows put aside; None: any number.
    """

    step: Literal["snapshot_data", "validate_data", "split_data"]
    kind: Literal["step", "suite", "rule", "budget", "finding"]
    name: str = ""
    column: str = ""
    count: int | None = None

    def __str__(self) -> str:
        where = f" on `{self.column}`" if self.column else ""
        return {
            "step": f"`{self.step}`{self.name and ': '}{self.name}",
            "suite": f"expectation `{self.name}`{where}",
            "rule": f"row rule `{self.name}`",
            "budget": f"budget of row rules (`{self.name}`)",
            "finding": f"`{self.name}`{where}",
        }[self.kind]


SNAPSHOT = Check("snapshot_data", "step")
SCHEMA = Check("validate_data", "step", "objects of one schema")
SPLIT = Check("split_data", "step")


def suite(name: str, column: str = "") -> Check:
    """An expectation by its type, without `expect_`."""
    return Check("validate_data", "suite", name, column)


def rule(name: str, count: int) -> Check:
    """A row rule that puts so many rows aside."""
    return Check("validate_data", "rule", name, count=count)


def budget(name: str) -> Check:
    """A row rule that more rows break than may be put aside."""
    return Check("validate_data", "budget", name)


def finding(name: CheckName, column: str = "") -> Check:
    """One of the checks besides suite and rules."""
    return Check("validate_data", "finding", name, column)


@dataclass(frozen=True)
class Corruption:
    """A way in which a feed goes wrong.

    Attributes:
        name: Unique; in words when its underscores are spaces.
        spoil: From good data to bad: changes the files of a feed.
        outcome: `blocked`: a step stops; `quarantined`: rows are put aside and the run goes on;
            `warned`: it goes on and says so.
        by: The check that must notice, whatever else does.
        names: What the message must say, besides the column.
        why: Why this outcome is right, and how the check can know.
    """

    name: str
    family: str
    spoil: Callable[[Feed], None]
    outcome: Outcome
    by: Check
    names: tuple[str, ...]
    why: str


class Family:
    """Corruptions of one family, in the order in which they are written down."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.corruptions: list[Corruption] = []

    def feed(
        self, outcome: Outcome, by: Check, *names: str, why: str
    ) -> Callable[[Callable[[Feed], None]], Callable[[Feed], None]]:
        """Note a function that changes a feed's files."""

        def note(spoil: Callable[[Feed], None]) -> Callable[[Feed], None]:
            self.corruptions.append(
                Corruption(spoil.__name__, self.name, spoil, outcome, by, names, why)
            )
            return spoil

        return note

    def rows(
        self, outcome: Outcome, by: Check, *names: str, why: str, months: tuple[int, ...] = (NEW,)
    ) -> Callable[[Callable[[Rows, Feed], Rows]], Callable[[Rows, Feed], Rows]]:
        """Note a function from the good rows of a month to bad ones."""

        def note(change: Callable[[Rows, Feed], Rows]) -> Callable[[Rows, Feed], Rows]:
            def spoil(feed: Feed) -> None:
                feed.edit(lambda rows: change(rows, feed), *months)

            spoil.__name__ = change.__name__
            self.feed(outcome, by, *names, why=why)(spoil)
            return change

        return note


def without_trained_checks(but: str = "") -> str:
    """The setting that turns off the checks that train models, `but` one."""
    off = ", ".join(f"{check}: 'off'" for check in TRAINED if check != but)
    return f"validation.levels={{{off}}}"


def fault(corruption: Corruption, records: Records) -> str:
    """Say what did not happen as it had to; empty: all did."""
    if not records:
        return "no step left a record"
    by, last = corruption.by, list(records.values())[-1]
    if corruption.outcome == "blocked":
        if (last.step, last.status, last.exit_code) != (by.step, "stopped", 1):
            return f"must be blocked by {by.step}, but {_ended(last)}"
        if not last.hint:
            return f"{by.step} gives no hint: {last.reason}"
    elif [(r.step, r.status) for r in records.values()] != [(s, "done") for s in DATA_STEPS]:
        return f"must go on to the end, but {_ended(last)}"
    said = last.reason
    if by.kind != "step":
        noticed = _noticed(corruption, records[by.step])
        if noticed is None:
            return f"{by} noticed nothing; {_ended(last)}"
        said += f"; {noticed}"  # the reason holds the first few of what was noticed
    missing = [word for word in (*corruption.names, by.column) if word not in said]
    return f"{missing} not in what was said: {said}" if missing else ""


def _noticed(corruption: Corruption, record: StepRecord) -> str | None:
    """What the check said; None: it noticed nothing, or not as it had to."""
    by = corruption.by
    if not record.figures:
        return None
    figures = ValidateFigures.model_validate(record.figures)
    blocks = corruption.outcome == "blocked"
    if by.kind in ("rule", "budget"):
        count = figures.quarantined.get(by.name, 0)
        if not count or by.count not in (None, count):
            return None
        over = "budget" in record.reason and by.name in record.reason
        return None if over != (by.kind == "budget") else f"{by.name}: {count} rows"
    if by.kind == "suite":
        said = [_words(e) for e in figures.expectations if _failed(e, by, blocks=blocks)]
    else:
        level = "block" if blocks else "warn"
        said = [
            f"{f.column}: {f.message}"
            for f in figures.findings
            if (f.check, f.column, f.level) == (by.name, by.column, level)
        ]
    return "; ".join(said) if said else None


def _failed(seen: Expectation, by: Check, *, blocks: bool) -> bool:
    same = (seen.name, seen.column) == (by.name, by.column)
    return same and not seen.success and (seen.severity == "critical") == blocks


def _words(seen: Expectation) -> str:
    return f"{seen.name} on {seen.column}: expected {seen.expected}, saw {seen.observed}"


def _ended(record: StepRecord) -> str:
    return f"{record.step} ended as {record.status} ({record.exit_code}) {record.reason}".strip()
