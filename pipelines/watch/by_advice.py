"""Drift or decay make a run due, on data that has had none: on other data nothing is new."""

from __future__ import annotations

from infra.errors import OutsideError
from pipelines.watch.advice import Advising, asked_for
from pipelines.watch.cursor import Cursor
from pipelines.watch.looks import Looks
from pipelines.watch.parts import Parts

_ASKING = 1.0  # seconds between two looks at the process that finds out


class AdviceTrigger:
    """The triggers `drift` and `decay`.

    Args:
        parts: Of the watcher.
        looks: At the data.
        advising: Finds out.
    """

    def __init__(self, parts: Parts, looks: Looks, advising: Advising) -> None:
        self._parts, self._looks, self._advising = parts, looks, advising
        self._version = ""  # of the data that an advice is sought for

    def prepare(self, cursor: Cursor) -> Cursor:
        """There is nothing to prepare."""
        return cursor

    def is_due(self, cursor: Cursor) -> bool:
        return self._advising.under_way or self.seconds_left(cursor) == 0

    def seconds_left(self, cursor: Cursor) -> float:
        if self._advising.under_way:
            return _ASKING
        since, every = cursor.since_advice, self._parts.settings.advise_every
        return 0.0 if since is None else max(0.0, every - since)

    def give_order(self, cursor: Cursor) -> Cursor:
        if self._advising.under_way:
            return self._follow(cursor)
        mine = False
        every = self._parts.settings.advise_every

        def claim(c: Cursor) -> Cursor | None:
            nonlocal mine
            mine = c.since_advice is None or c.since_advice >= every
            return c.with_(since_advice=0.0) if mine else None

        cursor = self._parts.cursors.update(claim)
        if mine:
            self._seek()
        return cursor

    def _seek(self) -> None:
        found = self._looks.look()
        if found.version and not self._parts.starting.is_known(found.version):
            self._version = found.version
            self._advising.begin()
            self._parts.teller.say("advising", "looking for drift and decay in the newest data")

    def _follow(self, cursor: Cursor) -> Cursor:
        parts = self._parts
        try:
            advice = self._advising.result()
        except OutsideError as error:  # the next one is sought when it is time for it
            parts.figures.count("evertrain_watch_errors_total", kind="Advice")
            parts.teller.say("trouble", error.what)
            return cursor
        if advice is None:
            return cursor
        asked = asked_for(advice, parts.settings.when)
        said = f"{advice.advice}: {'; '.join([*advice.reasons, *advice.unknown])}"
        parts.teller.say("advice", said, advice=advice.advice, reason=asked[0] if asked else None)
        if asked is None:
            return cursor
        found = self._looks.look()
        if found.version != self._version or parts.starting.is_known(found.version):
            return cursor  # other data by now: the next advice is about that
        reason, words = asked
        order = self._looks.order(found, reason=reason, words=words, since=parts.now())
        return self._looks.give(found, order)
