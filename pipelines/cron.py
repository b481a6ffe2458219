"""Schedules as Kubeflow reads them: six fields, seconds first; said in words, with the next times.

    cron = parse_cron("0 0 2 * * *")
    cron.words()                     # at 02:00 UTC every day
    cron.firings(now, count=3)

Kubeflow Pipelines reads a schedule by github.com/robfig/cron v1, in the time zone of its
installation (UTC unless told otherwise). That takes five fields too, and means something else by
them than everybody: `0 2 * * *` fires hourly. So five are refused here, as is all that it would
refuse, and what is surely a mistake: a schedule that never fires, or every few seconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from training_core.errors import ConfigurationError

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_SHORTCUTS = {
    "@yearly": "0 0 0 1 1 *", "@annually": "0 0 0 1 1 *", "@monthly": "0 0 0 1 * *",
    "@weekly": "0 0 0 * * 0", "@daily": "0 0 0 * * *", "@midnight": "0 0 0 * * *",
    "@hourly": "0 0 * * * *",
}  # fmt: skip
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0}
_SHORTEST = 60  # seconds between two runs, below which a schedule is surely a mistake
_YEARS = 5  # after which robfig/cron gives up looking for a time, and so do we


@dataclass(frozen=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()  # of the values from `low` on


_FIELDS = (
    _Field("seconds", 0, 59),
    _Field("minutes", 0, 59),
    _Field("hours", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, tuple(_MONTHS)),
    _Field("day of week", 0, 6, tuple(_DAYS)),
)


@dataclass(frozen=True)
class Cron:
    """A schedule.

    Attributes:
        text: As it was given, and as Kubeflow gets it.
        zone: Name of the time zone that it is meant in.
        fields: The values of each of the six fields; empty where `every` stands for them.
        both_days: Whether a day has to match day of month and day of week; False: either does.
        every: Seconds between two runs, of `@every`; 0: the fields say when.
    """

    text: str
    zone: str
    fields: tuple[frozenset[int], ...]
    both_days: bool
    every: int = 0

    def words(self) -> str:
        """Return when it fires, for a person: `at 02:00 UTC every day`."""
        if self.every:
            minutes, seconds = divmod(self.every, 60)
            parts = [(minutes // 60, "h"), (minutes % 60, "min"), (seconds, "s")]
            length = " ".join(f"{number} {unit}" for number, unit in parts if number)
            return f"every {length}, counted from when it is made"
        from cron_descriptor import Options, get_description

        options = Options()
        options.use_24hour_time_format = True
        said = get_description(_SHORTCUTS.get(self.text, self.text), options)
        if self.both_days:
            said = said.replace(", or on ", ", and only on ")
        time, comma, rest = said.partition(", ")
        at = re.fullmatch(r"At (\d\d:\d\d(?::\d\d)?)", time)
        if at is None:
            return f"{said[0].lower()}{said[1:]} ({self.zone})"
        return f"at {at.group(1)} {self.zone}" + (f", {rest}" if comma else " every day")

    def firings(self, since: datetime, *, count: int) -> list[datetime]:
        """Return the next times after `since`, in UTC; fewer if there are no more."""
        found: list[datetime] = []
        at = self.after(since)
        while at is not None and len(found) < count:
            found.append(at)
            at = self.after(at)
        return found

    def after(self, since: datetime) -> datetime | None:
        """Return the first time after `since`, in UTC; None: none within five years.

        An hour that daylight saving leaves out is not caught up, and one that it repeats counts
        twice, as with robfig/cron.
        """
        at = since.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=1)
        if self.every:
            return at + timedelta(seconds=self.every - 1)
        zone, last = ZoneInfo(self.zone), at.year + _YEARS
        seconds, minutes, hours = self.fields[:3]
        while True:
            local = at.astimezone(zone)
            if local.year > last:
                return None
            if not self._is_day(local):
                following = local.date() + timedelta(days=1)
                midnight = datetime(following.year, following.month, following.day, tzinfo=zone)
                at = midnight.astimezone(UTC)
            elif local.hour not in hours:
                at += timedelta(hours=1) - timedelta(minutes=local.minute, seconds=local.second)
            elif local.minute not in minutes:
                at += timedelta(minutes=1) - timedelta(seconds=local.second)
            elif local.second not in seconds:
                at += timedelta(seconds=1)
            else:
                return at

    def _is_day(self, local: datetime) -> bool:
        _, _, _, days, months, weekdays = self.fields
        if local.month not in months:
            return False
        of_month, of_week = local.day in days, local.isoweekday() % 7 in weekdays
        return of_month and of_week if self.both_days else of_month or of_week


def parse_cron(text: str, *, zone: str = "UTC") -> Cron:
    """Read a schedule.

    Args:
        text: Six fields, seconds first; or @hourly, @daily, @weekly, @monthly, @yearly, @every 2h.
        zone: Name of the time zone that Kubeflow's scheduler is in.

    Raises:
        ConfigurationError: Kubeflow would not take it, would read it in another way than it looks,
            or it never fires, or more often than once a minute.
    """
    given = text.strip()
    cron = _every(given, zone) if given.startswith("@every") else _by_fields(given, zone)
    if 0 < cron.every < _SHORTEST:
        raise _wrong(given, "fires more often than once a minute", "@every 15m, or rarer")
    if not cron.every and len(cron.fields[0]) > 1:
        raise _wrong(
            given,
            f"fires {len(cron.fields[0])} times a minute",
            f"the first field is that of the seconds: 0 {' '.join(given.split()[1:])}",
        )
    if cron.after(datetime(2023, 12, 31, tzinfo=UTC)) is None:
        raise _wrong(given, "never fires", "is there such a day? February has no 30th")
    return cron


def _by_fields(given: str, zone: str) -> Cron:
    if given.startswith(("TZ=", "CRON_TZ=")):
        raise _wrong(
            given,
            "names a time zone, which Kubeflow does not know in a schedule",
            "its scheduler has one for all (CRON_SCHEDULE_TIMEZONE of its installation, UTC if not "
            "set); write the time in that, and its name as cluster.timezone in evertrain.yaml",
        )
    if given.startswith("@") and given not in _SHORTCUTS:
        raise _wrong(given, "is not known", f"there are {', '.join(_SHORTCUTS)} and @every 2h30m")
    words = _SHORTCUTS.get(given, given).split()
    if len(words) == 5:
        raise _five(given, words, zone)
    if len(words) != 6:
        raise _wrong(
            given,
            f"has {len(words)} fields, not six",
            "seconds minutes hours day-of-month month day-of-week: 0 0 2 * * * is 02:00 every day",
        )
    return _six(given, words, zone)


def _six(given: str, words: list[str], zone: str) -> Cron:
    fields = tuple(_values(word, field, given) for word, field in zip(words, _FIELDS, strict=True))
    # What has a star anywhere, `*/2` too, does not widen the other field (robfig/cron's star bit).
    open_days = any(part[0] in "*?" for at in (3, 5) for part in words[at].split(","))
    return Cron(given, zone, fields, both_days=open_days)


def _five(given: str, words: list[str], zone: str) -> ConfigurationError:
    if words[4] == "7":
        words = [*words[:4], "0"]  # Sunday, in a cron of five fields
    meant = " ".join(["0", *words])
    try:
        said = _six(" ".join([*words, "*"]), [*words, "*"], zone).words()
        why = f"has five fields, and Kubeflow reads seconds first: it would fire {said}"
    except ConfigurationError:
        why = "has five fields, and Kubeflow reads seconds first"
    try:
        hint = f"write `{meant}`: {_six(meant, ['0', *words], zone).words()}"
    except ConfigurationError:
        hint = "write six fields: seconds minutes hours day-of-month month day-of-week"
    return _wrong(given, why, hint)


def _values(word: str, field: _Field, given: str) -> frozenset[int]:
    """The values that a field's text stands for."""
    found: set[int] = set()
    for part in word.split(","):
        span, *steps = part.split("/")
        ends = span.split("-")
        if len(steps) > 1 or len(ends) > 2:
            raise _wrong(given, f"has {part!r} for the {field.name}", "1-5, */15 or 10-20/2")
        if ends[0] in ("*", "?") and len(ends) == 1:
            first, last = field.low, field.high
        else:
            first = _value(ends[0], field, given)
            last = _value(ends[-1], field, given)
            if steps and len(ends) == 1:
                last = field.high  # 5/15 is 5-59/15
        if first > last:
            raise _wrong(
                given,
                f"has {part!r} for the {field.name}, which ends before it begins",
                f"write it as two: {ends[0]}-{field.high},{field.low}-{ends[-1]}",
            )
        step = int(steps[0]) if steps and re.fullmatch(r"[0-9]+", steps[0]) else 0
        if steps and step == 0:
            raise _wrong(given, f"has {part!r} for the {field.name}", "a step is a number from 1")
        found.update(range(first, last + 1, step or 1))
    return frozenset(found)


def _value(text: str, field: _Field, given: str) -> int:
    if text.lower() in field.names:
        return field.low + field.names.index(text.lower())
    names = f", or {', '.join(field.names)}" if field.names else ""
    usual = f"{field.name}: {field.low} to {field.high}{names}"
    if not re.fullmatch(r"[0-9]+", text):
        # L, W and # of other crons end here
        raise _wrong(given, f"has {text!r} for the {field.name}", usual)
    value = int(text)
    if not field.low <= value <= field.high:
        sunday = "; Sunday is 0" if field.names == tuple(_DAYS) and value == 7 else ""
        raise _wrong(given, f"has {text} for the {field.name}", usual + sunday)
    return value


def _every(given: str, zone: str) -> Cron:
    length = given.removeprefix("@every").strip()
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)([hms])", length)
    if not parts or "".join(number + unit for number, unit in parts) != length:
        raise _wrong(given, "names no length of time", "@every 6h, @every 1h30m")
    seconds = int(sum(float(number) * _UNITS[unit] for number, unit in parts))
    return Cron(given, zone, (), both_days=True, every=max(1, seconds))


def _wrong(given: str, why: str, hint: str) -> ConfigurationError:
    return ConfigurationError(f"the schedule `{given}` {why}", hint=hint)
