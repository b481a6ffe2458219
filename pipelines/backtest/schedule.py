"""The dates of a backtest: at each the pipeline runs, and the time to the next judges it."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from training_core.errors import ConfigurationError

_MONTHS = {"month": 1, "quarter": 3}
_DAYS = {"day": 1, "week": 7}
EVERY = "day, week, month, quarter, or days as in 10d"


@dataclass(frozen=True)
class Period:
    """From one date of the schedule to the next.

    Attributes:
        start: The pipeline sees rows before this.
        end: Rows from `start` to before this judge the model in production.
    """

    start: datetime
    end: datetime

    @property
    def name(self) -> str:
        """Its first day."""
        return f"{self.start:%Y-%m-%d}"

    @property
    def span(self) -> str:
        """First day and the day after the last, as part of a file's name."""
        return f"{self.start:%Y-%m-%d}_{self.end:%Y-%m-%d}"


def parse_day(text: str, option: str) -> datetime:
    """Read YYYY-MM-DD as its midnight in UTC.

    Raises:
        ConfigurationError: It is no day.
    """
    try:
        return datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC)
    except ValueError as error:
        raise ConfigurationError(
            f"{option} {text!r} is no day", hint=f"write it as in {option} 2013-04-01"
        ) from error


def periods(first: datetime, last: datetime, every: str) -> list[Period]:
    """Return the periods of a schedule, the last of them cut where `last` ends.

    Args:
        first: The first date.
        last: The last day that is judged, itself included.
        every: Day, week, month, quarter, or days as in `10d`.

    Raises:
        ConfigurationError: The days are the wrong way round, or the schedule is not known.
    """
    if last < first:
        raise ConfigurationError(
            f"--from {first:%Y-%m-%d} is after --to {last:%Y-%m-%d}",
            hint="the first date comes first: --from 2013-04-01 --to 2013-12-31",
        )
    end = last + timedelta(days=1)
    starts = [first]
    while (following := step(first, every, len(starts))) < end:
        starts.append(following)
    ends = [*starts[1:], end]
    return [Period(start, stop) for start, stop in zip(starts, ends, strict=True)]


def step(first: datetime, every: str, count: int) -> datetime:
    """Return the date that is so many steps after the first; before it where `count` is below 0.

    A month after the 31st is the last day of a shorter month.
    """
    if every in _MONTHS:
        months = first.year * 12 + first.month - 1 + count * _MONTHS[every]
        year, month = divmod(months, 12)
        day = min(first.day, calendar.monthrange(year, month + 1)[1])
        return first.replace(year=year, month=month + 1, day=day)
    found = re.fullmatch(r"([1-9]\d{0,3})d?", every)
    days = _DAYS.get(every) or (int(found[1]) if found else 0)
    if not days:
        raise ConfigurationError(f"--every {every!r} is no schedule", hint=f"it is {EVERY}")
    return first + count * timedelta(days=days)
