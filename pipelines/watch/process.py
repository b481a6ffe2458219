"""Turns until somebody asks the watcher to stop, or one alone; faults, and what is said of them."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable

from infra.errors import OutsideError
from infra.events.source import Event
from pipelines.watch.exporting import Figures
from pipelines.watch.observing import Observer
from pipelines.watch.parts import Parts
from pipelines.watch.stopping import StopAsked, Stopping
from pipelines.watch.telling import Teller
from pipelines.watch.watcher import Watcher
from training_core.errors import StoppedByGate

STUCK = 600.0  # seconds without a sign of life
_FIRST_PAUSE, _MOST_PAUSE = 1.0, 60.0


class Life:
    """What the probes ask for.

    Args:
        clock: Seconds, which nobody sets.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._beaten = clock, clock()
        self._trouble = "the first turn is under way"

    def beat(self) -> None:
        """Give a sign of life."""
        self._beaten = self._clock()

    def turned(self, trouble: str = "") -> None:
        """Note how a turn ended."""
        self.beat()
        self._trouble = trouble

    def healthy(self) -> str:
        """Why not; empty: alive."""
        silent = self._clock() - self._beaten
        return f"no sign of life for {silent:.0f} s" if silent > STUCK else ""

    def ready(self) -> str:
        """Why not; empty: the last turn did what it should."""
        return self.healthy() or self._trouble


class Process:
    """A watcher as a process.

    Args:
        parts: Of the watcher.
        life: Told of each turn.
        observer: Looks at the project for the figures; None: nobody asks for them.
        stopping: Entered.
        prepare: Called before the first turn, until it succeeds.
        sleep: Waits so many seconds.
    """

    def __init__(
        self,
        parts: Parts,
        *,
        life: Life,
        observer: Observer | None,
        stopping: Stopping,
        prepare: Callable[[], None] = lambda: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.watcher = Watcher(parts)
        self._parts, self._life, self._observer = parts, life, observer
        self._stopping, self._sleep = stopping, sleep
        self._figures: Figures = parts.figures
        self._teller: Teller = parts.teller
        self._prepare: Callable[[], None] | None = prepare
        self._failures = 0
        self._patience = 0.0  # the first look is what later ones are compared with
        self._unheard: list[Event] = []
        self._observed = float("-inf")

    def run(self) -> int:
        """Turn until asked to stop; return the exit code."""
        try:
            while True:
                self._try(self._turn)
        except StopAsked:
            name = self._stopping.asked.name if self._stopping.asked else "a signal"
            self._teller.say("stopped", f"by {name}: nothing is half done")
            return 130 if self._stopping.asked is signal.SIGINT else 0

    def once(self) -> None:
        """Look, wait until what came has been quiet, start a run if one is due.

        Raises:
            OutsideError, StoppedByGate: As a turn does.
            StopAsked: Somebody did.
        """
        self._get_ready()
        while True:
            if not self.watcher.expects(self.watcher.turn()):
                return
            with self._stopping.waiting():
                self._sleep(self.watcher.patience)

    def _get_ready(self) -> None:
        if self._prepare is not None:
            self._prepare()
            self._prepare = None

    def _turn(self) -> None:
        self._get_ready()
        if not self._unheard:
            self._unheard = self._wait(self._patience)
        self.watcher.hear(self._unheard)
        self._unheard = []
        self.watcher.turn()
        self._patience = self.watcher.patience
        self._observe()

    def _wait(self, seconds: float) -> list[Event]:
        source = self._parts.events
        before, outcome = source.looks, "failed"
        try:
            with self._stopping.waiting():
                events = source.wait(seconds)
            outcome = "succeeded"
        finally:
            looks = source.looks - before + (outcome == "failed")
            if looks:
                self._figures.count(
                    "evertrain_watch_polls_total", looks, source=source.name, outcome=outcome
                )
        if source.looks > before:
            self._figures.set("evertrain_watch_last_poll_timestamp_seconds", self._parts.now())
        return events

    def _observe(self) -> None:
        every = min(self._parts.settings.poll, 60.0)
        if self._observer is not None and time.monotonic() - self._observed >= every:
            self._observer.look(self._parts.now())
            self._observed = time.monotonic()

    def _try(self, turn: Callable[[], None]) -> None:
        """Do something; if the world outside fails, say so once, and wait, longer each time."""
        try:
            turn()
        except (OutsideError, StoppedByGate) as error:
            if self._prepare is not None and error.exit_code == 2:
                raise  # settings, or credentials: waiting does not help
            self._failures += 1
            self._figures.count("evertrain_watch_errors_total", kind=type(error).__name__)
            pause = min(_FIRST_PAUSE * 2 ** min(self._failures - 1, 10), _MOST_PAUSE)
            pause *= random.uniform(0.5, 1.0)  # noqa: S311 (so that watchers spread)
            self._figures.set("evertrain_watch_backoff_seconds", pause)
            hint = f" (hint: {error.hint})" if error.hint else ""
            self._teller.state("trouble", f"{error.what}{hint}; trying again until it works")
            self._life.turned(error.what)
            with self._stopping.waiting():
                self._sleep(pause)
            return
        self._life.turned()
        if self._failures:
            self._failures = 0
            self._figures.set("evertrain_watch_backoff_seconds", 0.0)
            if self._teller.over("trouble"):
                self._teller.say("well", "it works again")
