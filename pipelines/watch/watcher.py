"""One turn of the watcher: what is heard, found, due and under way.

    watcher.hear(source.wait(watcher.patience))
    watcher.turn()

Nothing that matters is kept here: each turn acts on what the cursor and the starts say, so a
watcher that is killed anywhere, or that comes second, does no harm and leaves nothing undone. What
is true of the data only a listing says; events say when to make one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime

from components.common.data_settings import DataSettings
from components.common.sources import Source
from components.common.trigger_settings import WatchSettings
from infra.errors import OutsideError
from infra.events.source import Event, EventSource
from infra.store import ObjectStore
from pipelines.watch.advice import Advising, asked_for
from pipelines.watch.cursor import Cursor, Cursors, Order
from pipelines.watch.debounce import is_ready, is_worth_a_look, seconds_left
from pipelines.watch.exporting import Figures
from pipelines.watch.looking import Look, count_new, forget_marks, keep_marks, look
from pipelines.watch.schedules import Due, Schedules, key_of
from pipelines.watch.starting import Progress, Starting
from pipelines.watch.telling import Teller

LONGEST_TURN = 20.0  # seconds between two turns, at most
_BUSY = 5.0  # seconds between two looks at who holds the lease
_ADVISING = 1.0  # seconds between two looks at the process that finds out


@dataclass(frozen=True)
class Parts:
    """What a watcher is made of.

    Attributes:
        name: Of the project.
        source, data: What is listed, and what of it is data.
        events: What tells that something came.
        busy: Says in words which run is under way; given a run's id, but for that one.
        advising: None: neither drift nor decay are triggers.
        now: Unix time: for schedules and figures, nothing else.
        calm: Entered while everything is listed, which may be broken off.
    """

    name: str
    settings: WatchSettings
    source: Source
    data: DataSettings
    events: EventSource
    store: ObjectStore
    cursors: Cursors
    starting: Starting
    schedules: Schedules
    busy: Callable[[str], str]
    advising: Advising | None
    figures: Figures
    teller: Teller
    now: Callable[[], float] = time.time
    calm: Callable[[], AbstractContextManager[None]] = nullcontext


class Watcher:
    """A project's watcher.

    Attributes:
        patience: Seconds until there is something to do, if no event comes.
        started, ended: Runs that this watcher started, and saw the end of: names in their order.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._settings, self._figures = parts.settings, parts.figures
        self._cursors, self._teller = parts.cursors, parts.teller
        self._looked: Look | None = None
        self._advised = ""  # version of the data that an advice is sought for
        self.patience = 0.0
        self.started: list[str] = []
        self.ended: list[str] = []

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
        self._measure(cursor)
        return cursor

    def hear(self, events: Sequence[Event]) -> None:
        """Make safe what events say, then let go of them.

        Raises:
            OutsideError: They are not safe: give them once more.
        """
        if events:
            at = min((event.at for event in events if event.at), default=self._parts.now())
            self._cursors.update(lambda c: c.with_events(len(events), at=at))
            example = next((event.key for event in events if event.key), "an unknown object")
            more = f" and {len(events) - 1} more" if len(events) > 1 else ""
            self._figures.count(
                "evertrain_watch_events_total", len(events), source=self._parts.events.name
            )
            self._teller.say("heard", f"{example}{more} came", events=len(events))
        self._parts.events.confirm()

    def _pursue(self, order: Order) -> Cursor:
        """Bring the run that is being started, or is under way, on."""
        progress = self._parts.starting.pursue(order)
        self._say_progress(order, progress)
        if progress.state != "ended":
            self.patience = min(self.patience, progress.wait)
            return self._cursors.read()
        self.ended.append(progress.start.name if progress.start else order.name)
        return self._cursors.update(
            lambda c: c.with_(order=None) if c.order and c.order.key == order.key else None
        )

    def _consider(self, cursor: Cursor) -> Cursor:
        """Find out whether a run is due, and give the order."""
        cursor = self._see_schedules(cursor)
        if "data" in self._settings.when and self._must_look(cursor):
            cursor = self._look(cursor)
        if cursor.order is not None:  # one that was left half done
            return self._pursue(cursor.order)
        due = self._parts.schedules.due(cursor.fired, now=self._time())
        is_due = self._is_due(cursor)
        if due is not None or is_due:
            if others := self._parts.busy(""):
                self._teller.state("waiting", f"a run is due, but {others}")
                self.patience = min(self.patience, _BUSY)
                return cursor
            if is_due:
                cursor = self._start_for_data(cursor)
            if cursor.order is None and due is not None:
                cursor = self._start_for_schedule(due)
        if cursor.order is None and self._parts.advising is not None:
            cursor = self._consider_advice(cursor, self._parts.advising)
        self._plan(cursor)
        return cursor

    # -- data ------------------------------------------------------------------------------------

    def _must_look(self, cursor: Cursor) -> bool:
        """Whether to list everything although nothing is due: at the start, and every so often."""
        since = cursor.since_look
        return self._looked is None or since is None or since >= self._settings.look_every

    def _is_due(self, cursor: Cursor) -> bool:
        pending = cursor.pending
        return (
            "data" in self._settings.when
            and pending is not None
            and is_worth_a_look(pending, self._settings)
            and seconds_left(pending, self._settings) == 0
        )

    def _start_for_data(self, cursor: Cursor) -> Cursor:
        """Start a run for the data, if a look confirms that one is due."""
        cursor = self._hear_the_last(cursor)
        if not self._is_due(cursor):
            return cursor
        self._look(cursor)
        cursor = self._hear_the_last(cursor)  # of a million objects the listing took minutes
        pending, found = cursor.pending, self._looked
        if cursor.order is not None or pending is None or not is_ready(pending, self._settings):
            return cursor
        assert found is not None
        new = "1 new object" if pending.count == 1 else f"{pending.count} new objects"
        order = self._order_for(found, since=pending.since, words=f"{new} of {found.objects}")
        return self._start_on(found, order)

    def _hear_the_last(self, cursor: Cursor) -> Cursor:
        """Hear what came until now, if it is to have been quiet."""
        if self._settings.quiet:
            self.hear(self._parts.events.wait(0))
        return self._cursors.read()

    def _order_for(self, found: Look, *, since: float = 0.0, words: str = "") -> Order:
        name = f"{self._parts.name}-{found.version[:12]}"
        return Order(
            key=found.version, name=name, reason="data", words=words or "new data", since=since
        )

    def _look(self, cursor: Cursor) -> Cursor:
        """List everything, and note what is new."""
        parts, heard = self._parts, cursor.heard
        found = self._list()
        if not found.version:
            self._teller.state("waiting", found.why_none)
            return self._cursors.update(lambda c: c.with_known("", heard=heard))
        if parts.starting.is_known(found.version):
            return self._take_up(found, heard)
        new = count_new(parts.store, found, cursor.version)
        now = parts.now()
        return self._cursors.update(
            lambda c: c.with_look(found.version, new=new, heard=heard, at=now)
        )

    def _list(self) -> Look:
        with self._parts.calm():
            self._looked = look(self._parts.source, self._parts.data)
        return self._looked

    def _take_up(self, found: Look, heard: int) -> Cursor:
        """Note that this data has had its run; go on with one that nobody has brought to its end.

        The latter is there only where a cursor was lost.
        """
        open_ = not self._parts.starting.is_over(found.version)
        order = self._order_for(found) if open_ else None
        before = self._cursors.read().version
        if before != found.version:
            keep_marks(self._parts.store, found)
        cursor = self._cursors.update(
            lambda c: c.with_known(found.version, heard=heard).with_(order=c.order or order)
        )
        self._forget(before, cursor)
        return cursor

    def _start_on(self, found: Look, order: Order) -> Cursor:
        """Order a run for a version of the data, unless something came since, and pursue it."""
        keep_marks(self._parts.store, found)
        before = ""

        def give(cursor: Cursor) -> Cursor | None:
            nonlocal before
            before = cursor.version
            pending = cursor.pending
            if cursor.order is not None or (pending and pending.version != found.version):
                return None
            return cursor.with_(order=order, pending=None, version=found.version)

        cursor = self._cursors.update(give)
        if cursor.order is None or cursor.order.key != order.key:
            return cursor
        self._forget(before, cursor)
        return self._pursue(cursor.order)

    def _forget(self, before: str, cursor: Cursor) -> None:
        """Let go of the marks of a version that nothing is counted from any more."""
        if before and before != cursor.version:
            forget_marks(self._parts.store, before)

    # -- schedules -------------------------------------------------------------------------------

    def _see_schedules(self, cursor: Cursor) -> Cursor:
        """Note schedules that are new: they are due from now on."""
        unseen = [key for key in self._parts.schedules.keys if key not in cursor.fired]
        if not unseen:
            return cursor
        now = self._time()
        return self._cursors.update(lambda c: c.with_(fired=dict.fromkeys(unseen, now) | c.fired))

    def _start_for_schedule(self, due: Due) -> Cursor:
        """Order the run of a due time, unless another watcher has."""
        schedule, key = due.schedule, key_of(due.schedule)
        stamp = f"{due.at.astimezone(UTC):%Y%m%dt%H%M%Sz}"
        order = Order(
            key=f"schedule-{schedule.name}-{stamp}",
            name=f"{self._parts.name}-{schedule.name}-{stamp}",
            reason="schedule",
            words=f"{schedule.name} was due at {due.at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC",
            overrides=schedule.settings,
            force=schedule.force,
            since=due.at.timestamp(),
        )

        def give(cursor: Cursor) -> Cursor | None:
            if cursor.order is not None or cursor.fired.get(key, due.at) >= due.at:
                return None
            return cursor.with_(order=order, fired=cursor.fired | {key: due.at})

        cursor = self._cursors.update(give)
        return self._pursue(order) if cursor.order == order else cursor

    # -- drift and decay -------------------------------------------------------------------------

    def _consider_advice(self, cursor: Cursor, advising: Advising) -> Cursor:
        """Seek an advice when it is time for one, and follow it."""
        if advising.under_way:
            return self._follow_advice(cursor, advising)
        mine = False
        every = self._settings.advise_every

        def claim(c: Cursor) -> Cursor | None:
            nonlocal mine
            mine = c.since_advice is None or c.since_advice >= every
            return c.with_(since_advice=0.0) if mine else None

        cursor = self._cursors.update(claim)
        if not mine:
            return cursor
        found, parts = self._list(), self._parts
        if found.version and not parts.starting.is_known(found.version):
            self._advised = found.version
            advising.begin()
            self._teller.say("advising", "looking for drift and decay in the newest data")
        return cursor

    def _follow_advice(self, cursor: Cursor, advising: Advising) -> Cursor:
        try:
            advice = advising.result()
        except OutsideError as error:  # the next one is sought when it is time for it
            self._figures.count("evertrain_watch_errors_total", kind="advice")
            self._teller.say("trouble", error.what)
            return cursor
        if advice is None:
            return cursor
        asked = asked_for(advice, self._settings.when)
        said = f"{advice.advice}: {'; '.join([*advice.reasons, *advice.unknown])}"
        self._teller.say("advice", said, advice=advice.advice, reason=asked[0] if asked else None)
        if asked is None or self._parts.busy(""):
            return cursor
        found = self._list()
        if found.version != self._advised or self._parts.starting.is_known(found.version):
            return cursor  # other data by now: the next advice is about that
        reason, words = asked
        order = self._order_for(found, words=words).with_(reason=reason)
        return self._start_on(found, order)

    def expects(self, cursor: Cursor) -> bool:
        """Whether a run will be due in a while although nothing else comes."""
        pending = cursor.pending
        if pending is None or "data" not in self._settings.when:
            return False
        return is_worth_a_look(pending, self._settings) and not self._parts.busy("")

    # -- what comes of it ------------------------------------------------------------------------

    def _plan(self, cursor: Cursor) -> None:
        """Set how long nothing has to be done, if no event comes."""
        waits = [self.patience]
        pending, parts = cursor.pending, self._parts
        if cursor.order is None and pending is not None and "data" in self._settings.when:
            if is_worth_a_look(pending, self._settings):
                waits.append(seconds_left(pending, self._settings))
                self._teller.state("pending", "what came waits until nothing else comes")
            else:
                few = f"{pending.count} new of the {self._settings.minimum} that a run takes"
                self._teller.state("pending", few)
        else:
            self._teller.over("pending")
        if (seconds := parts.schedules.seconds_to_next(now=self._time())) is not None:
            waits.append(seconds)
        if parts.advising is not None and cursor.order is None:
            since = cursor.since_advice or 0.0
            left = max(0.0, self._settings.advise_every - since)
            waits.append(_ADVISING if parts.advising.under_way else left)
        self.patience = max(0.0, min(waits))

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
        if state == "started":
            self.started.append(start.name)
            self._figures.count("evertrain_watch_runs_started_total", reason=start.reason)
            if order.since and start.attempt == 1:
                waited = max(0.0, self._parts.now() - order.since)
                self._figures.observe("evertrain_watch_event_to_start_seconds", waited)
            self._teller.say(
                "started", f"run {start.run} ({start.name}), by {start.reason}: {order.words}",
                **facts,
            )  # fmt: skip
        elif state == "ended":
            words = f"run {start.run} ({start.name}): {start.words}"
            self._teller.say("ended", words, exit_code=start.exit_code, **facts)
        else:
            words = f"run {start.run} ({start.name}): {start.words}"
            again = f"; again in {start.pause:.0f} s" if start.pause else "; again"
            self._teller.say("failed", words + again, exit_code=start.exit_code, **facts)

    def _measure(self, cursor: Cursor) -> None:
        pending = cursor.pending
        since = self._parts.now() - pending.waited if pending else 0.0
        self._figures.set("evertrain_watch_pending_objects", pending.count if pending else 0)
        self._figures.set("evertrain_watch_pending_since_timestamp_seconds", since)

    def _time(self) -> datetime:
        return datetime.fromtimestamp(self._parts.now(), UTC)
