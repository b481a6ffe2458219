"""When a row came to be: the time column."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from pipelines.init.asking import Choice
from pipelines.init.columns import Column
from pipelines.init.label import no_such_column
from pipelines.init.naming import plausible_time
from training_core.errors import ConfigurationError

NONE = "none"  # what --time takes for "there is none"


def choose_time(columns: Sequence[Column], *, given: str, now: datetime) -> Choice[str]:
    """Propose the time column, or "" for none.

    Args:
        columns: All of them, without the label.
        given: By --time; empty: not given.
        now: UTC; a column that is later than this cannot say when a row came to be.

    Raises:
        ConfigurationError: What was given is no time column.
    """
    if given and not (given == NONE and all(c.name != NONE for c in columns)):
        return Choice([_checked(given, columns)], clear=True, why="named by --time")
    if given:
        return Choice([""], clear=True, why="--time none")
    there = [c for c in columns if c.kind == "time" and c.known]
    usable = {c.name: fault(c, now) for c in there}
    fit = [c for c in there if not usable[c.name]]
    best = max((plausible_time(c.name) for c in fit), default=0)
    if not best:
        return Choice([""], clear=True, why=_none_because(columns, usable, fit))
    likely = [c.name for c in fit if plausible_time(c.name) == best]
    return Choice(
        likely,
        clear=len(likely) == 1,
        why="the only one that is a time, has no null and does not sound like something that "
        "happens to a row later"
        if len(likely) == 1
        else f"{' and '.join(likely)} could all be it",
    )


def fault(column: Column, now: datetime) -> str:
    """Why a time column cannot say when a row came to be, or ""."""
    if column.nulls:
        return f"{column.null_share:.1%} of its rows have none"
    if column.distinct == 1:
        return "it is the same in every row"
    if _moment(column.high) > now.astimezone(UTC).replace(tzinfo=None) + timedelta(days=1):
        return f"it reaches into the future ({column.high})"
    return ""


def _moment(value: datetime | date) -> datetime:
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)


def _checked(given: str, columns: Sequence[Column]) -> str:
    column = next((c for c in columns if c.name == given), None)
    if column is None:
        raise no_such_column(given, columns, option="--time")
    if column.kind != "time":
        raise ConfigurationError(
            f"--time {given!r}: the column is {column.type}, not a time",
            hint="write it as TIMESTAMP or DATE, or pass --time none to divide rows by hash",
        )
    if column.nulls:
        raise ConfigurationError(
            f"--time {given!r}: {column.nulls:,} of {column.rows:,} rows of the sample have none",
            hint="every row needs a time; name another column, or pass --time none",
        )
    return given


def _none_because(columns: Sequence[Column], faults: dict[str, str], fit: list[Column]) -> str:
    texts = [c.name for c in columns if c.dates]
    said = [f"{name}: {words}" for name, words in faults.items() if words]
    said += [f"{c.name}: by its name it happens to a row later" for c in fit]
    said += [f"{name}: holds dates as text; write it as TIMESTAMP or DATE" for name in texts]
    return "; ".join(said) or "no column is a time"
