"""Simulated time: actors in threads of their own, of which one runs at a time.

    world = World(random.Random(7))
    world.add("one", lambda: work(world))     # work calls world.sleep(…)
    world.run(until=3600)

Whoever sleeps lets the one run whose time comes next. So a program that waits only by `sleep` runs
as it would beside others, thousands of times as fast, and the same again with the same numbers.
"""

from __future__ import annotations

import heapq
import random
import threading
from collections.abc import Callable


class TheEnd(BaseException):
    """The simulated time is over."""


class World:
    """The clock, and who acts.

    Attributes:
        now: Seconds since the beginning.
        chance: Draws everything that is left to chance.
        failed: What ended an actor that should not have ended.
    """

    def __init__(self, chance: random.Random) -> None:
        self.now, self.chance = 0.0, chance
        self.failed: list[BaseException] = []
        self._waiting: list[tuple[float, float, _Actor]] = []
        self._acting: _Actor | None = None
        self._until, self._over = 0.0, False
        self._stopped = _held()

    def add(self, name: str, work: Callable[[], None], *, after: float = 0.0) -> None:
        """Let somebody act, some seconds from now."""
        self._push(_Actor(name, work, self), after)

    def sleep(self, seconds: float) -> None:
        """Let that much time pass for whoever calls this.

        Raises:
            TheEnd: There is no more time.
        """
        actor = self._acting
        assert actor is not None
        self._push(actor, seconds)
        self.go_on()
        actor.go.acquire()
        if self._over:
            raise TheEnd

    def run(self, *, until: float) -> None:
        """Let time pass until then; whoever still acts is ended."""
        self._until = until
        for over in (False, True):
            self._over = over
            while self._waiting and (over or self._waiting[0][0] <= until):
                self.go_on()
                self._stopped.acquire()
        self.now = until

    def go_on(self) -> None:
        """Let the one act whose time comes next, or give back to `run`."""
        if not self._waiting or (not self._over and self._waiting[0][0] > self._until):
            self._stopped.release()
            return
        at, _, actor = heapq.heappop(self._waiting)
        self.now = max(self.now, min(at, self._until))
        self._acting = actor
        actor.go.release()
        if not actor.begun:
            actor.begun = True
            actor.thread.start()

    @property
    def is_over(self) -> bool:
        return self._over

    def _push(self, actor: _Actor, seconds: float) -> None:
        at = self.now + max(0.0, seconds)
        heapq.heappush(self._waiting, (at, self.chance.random(), actor))


class _Actor:
    def __init__(self, name: str, work: Callable[[], None], world: World) -> None:
        self.go, self.begun = _held(), False

        def act() -> None:
            self.go.acquire()
            try:
                if not world.is_over:
                    work()
            except TheEnd:
                pass
            except BaseException as error:  # noqa: BLE001 (said by whoever runs the world)
                world.failed.append(error)
            world.go_on()

        self.thread = threading.Thread(target=act, name=name, daemon=True)


def _held() -> threading.Lock:
    """A lock that somebody else lets go of: a third of the time of a semaphore."""
    lock = threading.Lock()
    lock.acquire()
    return lock
