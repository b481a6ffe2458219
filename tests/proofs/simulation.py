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
        self._turn = threading.Semaphore(0)
        self._acting: _Actor | None = None
        self._over = False

    def add(self, name: str, work: Callable[[], None], *, after: float = 0.0) -> None:
        """Let somebody act, some seconds from now."""
        actor = _Actor(name, work, self)
        heapq.heappush(self._waiting, (self.now + after, self.chance.random(), actor))

    def sleep(self, seconds: float) -> None:
        """Let that much time pass for whoever calls this.

        Raises:
            TheEnd: There is no more time.
        """
        actor = self._acting
        assert actor is not None
        at = self.now + max(0.0, seconds)
        heapq.heappush(self._waiting, (at, self.chance.random(), actor))
        self._turn.release()
        actor.go.acquire()
        if self._over:
            raise TheEnd

    def run(self, *, until: float) -> None:
        """Let time pass until then; whoever still acts is ended."""
        while self._waiting and self._waiting[0][0] <= until:
            at, _, actor = heapq.heappop(self._waiting)
            self.now = max(self.now, at)
            self._let(actor)
        self.now, self._over = max(self.now, until), True
        while self._waiting:
            self._let(heapq.heappop(self._waiting)[2])

    def _let(self, actor: _Actor) -> None:
        self._acting = actor
        actor.go.release()
        if not actor.thread.is_alive() and not actor.begun:
            actor.begun = True
            actor.thread.start()
        self._turn.acquire()

    def ended(self, error: BaseException | None) -> None:
        """Called by an actor at its end."""
        if error is not None and not isinstance(error, TheEnd):
            self.failed.append(error)
        self._turn.release()


class _Actor:
    def __init__(self, name: str, work: Callable[[], None], world: World) -> None:
        self.go, self.begun = threading.Semaphore(0), False

        def act() -> None:
            self.go.acquire()
            error: BaseException | None = None
            try:
                if not world._over:
                    work()
            except BaseException as caught:  # noqa: BLE001 (said by whoever runs the world)
                error = caught
            world.ended(error)

        self.thread = threading.Thread(target=act, name=name, daemon=True)
