"""The schedules that the KFP API server accepts, and when they fire.

`Cron` is github.com/robfig/cron v1 (`Parse`), which is what the server checks with: six fields,
seconds first. Of five fields it takes the first for seconds all the same, and adds a `*` at the
end: `0 2 * * *` fires two minutes past every hour.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_MONTHS = {name: at for at, name in enumerate(["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1)}  # fmt: skip # noqa: E501
_DAYS = {name: at for at, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}), (0, 59, {}), (0, 23, {}), (1, 31, {}), (1, 12, _MONTHS), (0, 6, _DAYS),
)  # fmt: skip
_DESCRIPTORS = {
    "@yearly": "0 0 0 1 1 *", "@annually": "0 0 0 1 1 *", "@monthly": "0 0 0 1 * *",
    "@weekly": "0 0 0 * * 0", "@daily": "0 0 0 * * *", "@midnight": "0 0 0 * * *",
    "@hourly": "0 0 * * * *",
}  # fmt: skip
_UNITS = {"h": 3600, "m": 60, "s": 1}


@dataclass(frozen=True)
class Cron:
    """Times that match all six sets; `stars` says which of the two fields of days were left open.

    Raises:
        ValueError: From `parse`, in the words of the library.
    """

    fields: tuple[frozenset[int], ...]
    stars: tuple[bool, bool]

    @classmethod
    def parse(cls, text: str) -> Cron | Every:
        if text.startswith("@every "):
            return Every(_duration(text.removeprefix("@every ").strip()))
        if text.startswith("@"):
            if text not in _DESCRIPTORS:
                raise ValueError(f"Unrecognized descriptor: {text}")
            text = _DESCRIPTORS[text]
        words = text.split()
        if len(words) not in (5, 6):
            raise ValueError(f"Expected 5 or 6 fields, found {len(words)}: {text}")
        words = [*words, "*"][:6]
        fields = tuple(_field(word, *each) for word, each in zip(words, _FIELDS, strict=True))
        stars = tuple(bool(set(words[at]) & {"*", "?"}) for at in (3, 5))
        return cls(fields, (stars[0], stars[1]))

    def after(self, at: datetime) -> datetime | None:
        """The first time later than `at`; None if there is none within five years."""
        moment = at.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=1)
        last = moment.year + 5
        second, minute, hour = self.fields[:3]
        while moment.year <= last:
            if not self._day(moment):
                moment = moment.replace(hour=0, minute=0, second=0) + timedelta(days=1)
            elif moment.hour not in hour:
                moment = moment.replace(minute=0, second=0) + timedelta(hours=1)
            elif moment.minute not in minute:
                moment = moment.replace(second=0) + timedelta(minutes=1)
            elif moment.second not in second:
                moment += timedelta(seconds=1)
            else:
                return moment
        return None

    def _day(self, moment: datetime) -> bool:
        if moment.month not in self.fields[4]:
            return False
        of_month = moment.day in self.fields[3]
        of_week = moment.isoweekday() % 7 in self.fields[5]
        return of_month and of_week if any(self.stars) else of_month or of_week


@dataclass(frozen=True)
class Every:
    """An interval, counted from where one begins to count."""

    seconds: int

    def after(self, at: datetime) -> datetime | None:
        return at + timedelta(seconds=self.seconds)


def times(
    schedule: Cron | Every, *, since: datetime, until: datetime, end: datetime | None
) -> Iterator[datetime]:
    """The times later than `since`, up to `until` and to the schedule's own end."""
    at = schedule.after(since)
    while at is not None and at <= until and (end is None or at <= end):
        yield at
        at = schedule.after(at)


def _field(text: str, low: int, high: int, names: dict[str, int]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, *steps = part.split("/")
        if len(steps) > 1:
            raise ValueError(f"Too many slashes: {part}")
        ends = span.split("-")
        if len(ends) > 2:
            raise ValueError(f"Too many hyphens: {part}")
        if ends[0] in ("*", "?"):
            start, stop = low, high
        else:
            start = _number(ends[0], names)
            stop = _number(ends[1], names) if len(ends) == 2 else start
            if steps and len(ends) == 1:
                stop = high  # "5/15" is "5-max/15"
        step = _number(steps[0], {}) if steps else 1
        if start < low:
            raise ValueError(f"Beginning of range ({start}) below minimum ({low}): {part}")
        if stop > high:
            raise ValueError(f"End of range ({stop}) above maximum ({high}): {part}")
        if start > stop:
            raise ValueError(f"Beginning of range ({start}) beyond end of range ({stop}): {part}")
        if step == 0:
            raise ValueError(f"Step of range should be a positive number: {part}")
        found.update(range(start, stop + 1, step))
    return frozenset(found)


def _number(text: str, names: dict[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if re.fullmatch(r"-\d+", text):
        raise ValueError(f"Negative number ({text}) not allowed: {text}")
    if not re.fullmatch(r"\d+", text):
        said = f'strconv.Atoi: parsing "{text}": invalid syntax'
        raise ValueError(f"Failed to parse int from {text}: {said}")
    return int(text)


def _duration(text: str) -> int:
    parts = re.findall(r"(\d+)([hms])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"Failed to parse duration @every {text}: time: invalid duration {text}")
    return max(1, sum(int(number) * _UNITS[unit] for number, unit in parts))
