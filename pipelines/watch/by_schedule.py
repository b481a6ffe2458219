"""A schedule makes a run due, at each of its times once."""

from __future__ import annotations

import math
from datetime import UTC

from pipelines.watch.cursor import Cursor, Order
from pipelines.watch.parts import Parts
from pipelines.watch.schedules import Due, key_of


class ScheduleTrigger:
    """The trigger `schedule`.

    Times are those of this machine's clock. Watchers whose clocks differ find the same time due,
    one sooner than the other, and its name lets one run come of it.

    Args:
        parts: Of the watcher.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def prepare(self, cursor: Cursor) -> Cursor:
        """Note schedules that are new: they are due from now on."""
        unseen = [key for key in self._parts.schedules.keys if key not in cursor.fired]
        if not unseen:
            return cursor
        seen = dict.fromkeys(unseen, self._parts.time())
        return self._parts.cursors.update(lambda c: c.with_(fired=seen | c.fired))

    def is_due(self, cursor: Cursor) -> bool:
        return self._due(cursor) is not None

    def seconds_left(self, cursor: Cursor) -> float:
        left = self._parts.schedules.seconds_to_next(now=self._parts.time())
        return math.inf if left is None else left

    def give_order(self, cursor: Cursor) -> Cursor:
        due = self._due(cursor)
        if due is None:
            return cursor
        order, key = self._order(due), key_of(due.schedule)

        def give(c: Cursor) -> Cursor | None:
            if c.order is not None or c.fired.get(key, due.at) >= due.at:
                return None  # another watcher was faster
            return c.with_(order=order, fired=c.fired | {key: due.at})

        return self._parts.cursors.update(give)

    def _due(self, cursor: Cursor) -> Due | None:
        return self._parts.schedules.due(cursor.fired, now=self._parts.time())

    def _order(self, due: Due) -> Order:
        name, at = due.schedule.name, due.at.astimezone(UTC)
        stamp = f"{at:%Y%m%dt%H%M%Sz}"
        return Order(
            key=f"schedule-{name}-{stamp}",
            name=f"{self._parts.name}-{name}-{stamp}",
            reason="schedule",
            words=f"{name} was due at {at:%Y-%m-%d %H:%M:%S} UTC",
            overrides=due.schedule.settings,
            force=due.schedule.force,
            since=at.timestamp(),
        )
