"""Looks at the data, and the order of a run for what was seen there."""

from __future__ import annotations

from components.common.trigger_settings import Trigger
from pipelines.watch.cursor import Cursor, Order
from pipelines.watch.looking import Look, forget_marks, keep_marks, look
from pipelines.watch.parts import Parts


class Looks:
    """A watcher's looks at everything that is there.

    Attributes:
        last: What the last one found; None: there was none yet.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.last: Look | None = None

    def look(self) -> Look:
        """List the data.

        Raises:
            StoppedByGate: A key of it cannot be read.
            OutsideError: It is out of reach.
        """
        with self._parts.calm():
            self.last = look(self._parts.source, self._parts.data)
        return self.last

    def order(
        self, found: Look, *, reason: Trigger = "data", words: str = "new data", since: float = 0.0
    ) -> Order:
        """Return the order of a run for what was found: the same from whoever finds it."""
        name = f"{self._parts.name}-{found.version[:12]}"
        return Order(key=found.version, name=name, reason=reason, words=words, since=since)

    def give(self, found: Look, order: Order) -> Cursor:
        """Give an order for what was found, unless something came since, or there is one."""
        keep_marks(self._parts.store, found)
        before = ""
        by_data = "data" in self._parts.settings.when  # else nobody looks at what waits

        def give(cursor: Cursor) -> Cursor | None:
            nonlocal before
            before = cursor.version
            pending = cursor.pending if by_data else None
            if cursor.order is not None or (pending and pending.version != found.version):
                return None
            return cursor.with_(order=order, pending=None, version=found.version)

        cursor = self._parts.cursors.update(give)
        self.forget(before, cursor)
        return cursor

    def forget(self, before: str, cursor: Cursor) -> None:
        """Let go of the marks of a version that nothing is counted from any more."""
        if before and before != cursor.version:
            forget_marks(self._parts.store, before)
