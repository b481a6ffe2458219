"""Which due times of a project's schedules have passed.

As Kubeflow has it: of several due times that were missed the last one fires alone, unless the
schedule catches up; then each of them does, one after another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from croniter import croniter

from components.common.cluster_settings import ScheduleSettings


class Due(NamedTuple):
    """A schedule whose time has come."""

    schedule: ScheduleSettings
    at: datetime


def key_of(schedule: ScheduleSettings) -> str:
    """What a schedule's last due time is kept under: another cron is another schedule."""
    return f"{schedule.name} {schedule.cron}"


def first_due(
    schedules: Sequence[ScheduleSettings],
    fired: Mapping[str, datetime],
    *,
    now: datetime,
    zone: str,
) -> Due | None:
    """Return the schedule to fire; None: none is due.

    Args:
        schedules: Of the project.
        fired: By `key_of`, the last due time that was taken. What is not in it is not due.
        now: With a time zone.
        zone: In which the schedules are meant.
    """
    found = []
    for schedule in schedules:
        last = fired.get(key_of(schedule))
        if not schedule.enabled or last is None:
            continue
        if schedule.catch_up:
            at = _next(schedule, last, zone)
        else:
            # croniter's times have whole seconds; one that is now is due
            before = now.replace(microsecond=0) + timedelta(seconds=1)
            at = _times(schedule, before, zone).get_prev(datetime)
        if last < at <= now:
            found.append(Due(schedule, at))
    return min(found, key=lambda due: due.at, default=None)


def seconds_to_next(
    schedules: Sequence[ScheduleSettings], *, now: datetime, zone: str
) -> float | None:
    """Return the seconds until the next due time of any schedule; None: there is none."""
    waits = [(_next(s, now, zone) - now).total_seconds() for s in schedules if s.enabled]
    return min(waits, default=None)


def _next(schedule: ScheduleSettings, after: datetime, zone: str) -> datetime:
    found: datetime = _times(schedule, after, zone).get_next(datetime)
    return found


def _times(schedule: ScheduleSettings, start: datetime, zone: str) -> croniter:
    return croniter(schedule.cron, start.astimezone(ZoneInfo(zone)), second_at_beginning=True)
