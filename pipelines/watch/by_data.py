"""New data makes a run due: once it has been quiet, and a listing says what there is."""

from __future__ import annotations

import math
from collections.abc import Callable

from pipelines.watch.cursor import Cursor
from pipelines.watch.debounce import is_ready, is_worth_a_look, seconds_left
from pipelines.watch.looking import Look, count_new, keep_marks
from pipelines.watch.looks import Looks
from pipelines.watch.parts import Parts


class DataTrigger:
    """The trigger `data`.

    Args:
        parts: Of the watcher.
        looks: At the data.
        hear_the_last: Makes safe what came until now.
    """

    def __init__(self, parts: Parts, looks: Looks, *, hear_the_last: Callable[[], None]) -> None:
        self._parts, self._looks, self._settings = parts, looks, parts.settings
        self._hear_the_last = hear_the_last

    def prepare(self, cursor: Cursor) -> Cursor:
        """List everything when the watcher begins, and every so often: an event may be lost."""
        since = cursor.since_look
        if self._looks.last is None or since is None or since >= self._settings.look_every:
            return self._look(cursor)
        return cursor

    def is_due(self, cursor: Cursor) -> bool:
        return self.seconds_left(cursor) == 0

    def seconds_left(self, cursor: Cursor) -> float:
        pending = cursor.pending
        if pending is None or not is_worth_a_look(pending, self._settings):
            return math.inf
        return seconds_left(pending, self._settings)

    def give_order(self, cursor: Cursor) -> Cursor:
        cursor = self._up_to_date(cursor)
        if not self.is_due(cursor):
            return cursor
        found = self._look_at(cursor)
        cursor = self._up_to_date(cursor)  # of a million objects the listing took minutes
        pending = cursor.pending
        if cursor.order is not None or pending is None or not is_ready(pending, self._settings):
            return cursor
        new = "1 new object" if pending.count == 1 else f"{pending.count} new objects"
        words = f"{new} of {found.objects}"
        return self._looks.give(found, self._looks.order(found, words=words, since=pending.since))

    def words(self, cursor: Cursor) -> str:
        """What waits, for people; empty: nothing does."""
        pending = cursor.pending
        if pending is None:
            return ""
        if is_worth_a_look(pending, self._settings):
            return "what came waits until nothing else comes"
        return f"{pending.count} new objects of the {self._settings.minimum} that a run takes"

    def _up_to_date(self, cursor: Cursor) -> Cursor:
        """Hear what came until now, if it is to have been quiet."""
        if self._settings.quiet:
            self._hear_the_last()
        return self._parts.cursors.read()

    def _look_at(self, cursor: Cursor) -> Look:
        self._look(cursor)
        assert self._looks.last is not None
        return self._looks.last

    def _look(self, cursor: Cursor) -> Cursor:
        """List everything, and note what is new."""
        parts, heard = self._parts, cursor.heard
        found = self._looks.look()
        if not found.version:
            parts.teller.state("waiting", found.why_none)
            return parts.cursors.update(lambda c: c.with_known("", heard=heard))
        if parts.starting.is_known(found.version):
            return self._take_up(found, heard)
        new = count_new(parts.store, found, cursor.version)
        now = parts.now()
        return parts.cursors.update(
            lambda c: c.with_look(found.version, new=new, heard=heard, at=now)
        )

    def _take_up(self, found: Look, heard: int) -> Cursor:
        """Note that this data has had its run; go on with one that nobody has brought to its end.

        The latter is there only where a cursor was lost.
        """
        parts = self._parts
        order = None if parts.starting.is_over(found.version) else self._looks.order(found)
        before = parts.cursors.read().version
        if before != found.version:
            keep_marks(parts.store, found)
        cursor = parts.cursors.update(
            lambda c: c.with_known(found.version, heard=heard).with_(order=c.order or order)
        )
        self._looks.forget(before, cursor)
        return cursor
