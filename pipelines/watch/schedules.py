"""Which due times of a project's schedules have passed.

As Kubeflow has it: of several due times that were missed the last one fires alone, unless the
schedule catches up; then each of them does, one after another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from components.common.cluster_settings import ScheduleSettings
from pipelines.cron import Cron, parse_cron


class Due(NamedTuple):
    """A schedule whose time has come."""

    schedule: ScheduleSettings
    at: datetime


class Schedules:
    """The schedules of a project that are not switched off.

    Args:
        given: As the settings have them.
        zone: Name of the time zone that they are meant in.

    Raises:
        ConfigurationError: One is none that Kubeflow would take.
    """

    def __init__(self, given: Sequence[ScheduleSettings], *, zone: str) -> None:
        enabled = [each for each in given if each.enabled]
        self._crons: list[tuple[ScheduleSettings, Cron]] = [
            (each, parse_cron(each.cron, zone=zone)) for each in enabled
        ]

    @property
    def keys(self) -> list[str]:
        """What their last due times are kept under."""
        return [key_of(schedule) for schedule, _ in self._crons]

    @property
    def words(self) -> list[str]:
        """What there is, for people."""
        return [f"{schedule.name} {cron.words()}" for schedule, cron in self._crons]

    def due(self, fired: Mapping[str, datetime], *, now: datetime) -> Due | None:
        """Return the schedule to fire first; None: none is due.

        Args:
            fired: By `key_of`, the last due time that was taken. What is not in it is not due.
            now: With a time zone.
        """
        found = []
        for schedule, cron in self._crons:
            last = fired.get(key_of(schedule))
            at = cron.after(last) if last is not None else None
            if at is None or at > now:
                continue
            if not schedule.catch_up:
                while (later := cron.after(at)) is not None and later <= now:
                    at = later
            found.append(Due(schedule, at))
        return min(found, key=lambda due: due.at, default=None)

    def seconds_to_next(self, *, now: datetime) -> float | None:
        """Return the seconds until the next due time of any schedule; None: there is none."""
        times = [cron.after(now) for _, cron in self._crons]
        return min(((at - now).total_seconds() for at in times if at is not None), default=None)


def key_of(schedule: ScheduleSettings) -> str:
    """What a schedule's last due time is kept under: another cron is another schedule."""
    return f"{schedule.name} {schedule.cron}"
