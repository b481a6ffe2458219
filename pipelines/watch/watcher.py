"""One turn of the watcher: what is heard, found, due and under way.

    watcher.hear(source.wait(watcher.patience))
    watcher.turn()

Nothing that matters is kept here: each turn acts on what the cursor and the starts say, so a
watcher that is killed anywhere, or that comes second, does no harm and leaves nothing undone. What
is true of the data only a listing says; events say when to make one.
"""

from __future__ import annotations

from collections.abc import Sequence

from infra.events.source import Event
from pipelines.watch.by_advice import AdviceTrigger
from pipelines.watch.by_data import DataTrigger
from pipelines.watch.by_schedule import ScheduleTrigger
from pipelines.watch.cursor import Cursor, Order
from pipelines.watch.looks import Looks
from pipelines.watch.parts import Parts, Trigger
from pipelines.watch.starting import Progress

LONGEST_TURN = 20.0  # seconds between two turns, at most
_BUSY = 5.0  # seconds between two looks at who holds the lease


class Watcher:
    """A project's watcher.

    Attributes:
        patience: Seconds until there is something to do, if no event comes.
        started: Names of the runs that this watcher started, in their order.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts, self._figures, self._teller = parts, parts.figures, parts.teller
        self._cursors = parts.cursors
        self.patience = 0.0
        self.started: list[str] = []
        looks = Looks(parts)
        self._data: DataTrigger | None = None
        self._triggers: list[Trigger] = []
        if "data" in parts.settings.when:
            self._data = DataTrigger(parts, looks, hear_the_last=self._hear_the_last)
            self._triggers.append(self._data)
        if parts.schedules.keys:
            self._triggers.append(ScheduleTrigger(parts))
        self._advice: AdviceTrigger | None = None
        if parts.advising is not None:
            self._advice = AdviceTrigger(parts, looks, parts.advising)
            self._triggers.append(self._advice)

    def hear(self, events: Sequence[Event]) -> None:
        """Make safe what events say, then let go of them.

        Raises:
            OutsideError: They are not safe: give them once more.
        """
        if events and self._data is not None:
            at = min((event.at for event in events if event.at), default=self._parts.now())
            self._cursors.update(lambda c: c.with_events(len(events), at=at))
            self._figures.count(
                "evertrain_watch_events_total", len(events), source=self._parts.events.name
            )
            example = next((event.key for event in events if event.key), "an unknown object")
            more = f" and {len(events) - 1} more" if len(events) > 1 else ""
            self._teller.say("heard", f"{example}{more} came", events=len(events))
        self._parts.events.confirm()

    def turn(self) -> Cursor:
        """Do all that is to be done now; return what is known then.

        Raises:
            OutsideError: Store, data, queue or starter failed: called again, it goes on.
            StoppedByGate: A key of the data cannot be read.
        """
        self.patience = LONGEST_TURN
        cursor = self._cursors.read()
        if cursor.order is not None:
            cursor = self._pursue(cursor.order)
        if cursor.order is None:
            cursor = self._consider(cursor)
        if cursor.order is None:
            waits = [trigger.seconds_left(cursor) for trigger in self._triggers]
            self.patience = min([self.patience, *waits])
        self._say_pending(cursor)
        return cursor

    def expects(self, cursor: Cursor) -> bool:
        """Whether a run may turn out to be due in a while although nothing else comes."""
        if cursor.order is not None:
            return False
        advising = self._parts.advising
        if advising is not None and advising.under_way:
            return True
        soon = self._data is not None and self._data.seconds_left(cursor) < float("inf")
        return soon and not self._parts.busy("")

    def _consider(self, cursor: Cursor) -> Cursor:
        """Find out whether a run is due; if so, order it, and go about it."""
        for trigger in self._triggers:
            cursor = trigger.prepare(cursor)
        for trigger in self._triggers:
            if cursor.order is None and trigger.is_due(cursor):
                if others := self._parts.busy(""):
                    self._teller.state("waiting", f"a run may be due, but {others}")
                    self.patience = min(self.patience, _BUSY)
                    return cursor
                cursor = trigger.give_order(cursor)
        return cursor if cursor.order is None else self._pursue(cursor.order)

    def _pursue(self, order: Order) -> Cursor:
        """Bring the run that is being started, or is under way, on."""
        progress = self._parts.starting.pursue(order)
        self._say_progress(order, progress)
        if progress.state != "ended":
            self.patience = min(self.patience, progress.wait)
            return self._cursors.read()
        return self._cursors.update(
            lambda c: c.with_(order=None) if c.order and c.order.key == order.key else None
        )

    def _hear_the_last(self) -> None:
        self.hear(self._parts.events.wait(0))

    def _say_pending(self, cursor: Cursor) -> None:
        pending = cursor.pending
        since = self._parts.now() - pending.waited if pending else 0.0
        self._figures.set("evertrain_watch_pending_objects", pending.count if pending else 0)
        self._figures.set("evertrain_watch_pending_since_timestamp_seconds", since)
        words = self._data.words(cursor) if self._data and cursor.order is None else ""
        if words:
            self._teller.state("pending", words)
        else:
            self._teller.over("pending")

    def _say_progress(self, order: Order, progress: Progress) -> None:
        start, state = progress.start, progress.state
        if state == "waiting":
            self._teller.state("waiting", f"{order.name} is due, but {progress.words}")
            return
        assert start is not None
        if not progress.news:
            if state == "taken":
                self._teller.state("taken", f"{start.name} is being started by {start.by}")
            return
        self._teller.over("waiting")
        self._teller.over("taken")
        facts = {"name": start.name, "run": start.run, "reason": start.reason}
        words = f"run {start.run} ({start.name})"
        if state == "started":
            self.started.append(start.name)
            self._figures.count("evertrain_watch_runs_started_total", reason=start.reason)
            if order.since and start.attempt == 1:
                waited = max(0.0, self._parts.now() - order.since)
                self._figures.observe("evertrain_watch_event_to_start_seconds", waited)
            self._teller.say("started", f"{words}, by {start.reason}: {order.words}", **facts)
        elif state == "ended":
            self._teller.say("ended", f"{words}: {start.words}", code=start.exit_code, **facts)
        else:
            again = f"again in {start.pause:.0f} s" if start.pause else "again when it can"
            words = f"{words}: {start.words}; {again}"
            self._teller.say("failed", words, code=start.exit_code, **facts)
