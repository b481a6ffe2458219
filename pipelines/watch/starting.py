"""One run for one order, whoever gives it, and however often.

    starts/<key>.json, created before anything is started:
    claimed ─► started ─► ended
       ▲          └─► failed ─┐ the world outside failed: once more, after a while
       └──────────────────────┘

Whoever creates the object, or takes over a claim that is `STALE` seconds old by the store's clock,
asks the starter for a run of that name, and starts one only if there is none. It does so within
`FRESH` seconds of its claim by its own clock; a start that was asked for then has had its effect,
or never will, long before anybody else may take the claim over. What is left is a process that
stands still for more than a minute between its last look at the clock and the sending of its
request. The run that it then starts beside another finds the lease held, or its run key finished,
and ends, green, in its first step.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from components.common.trigger_settings import Trigger
from infra.errors import ObjectDamaged, ObjectMissing
from infra.store import ObjectStore
from pipelines.watch.cursor import Order
from pipelines.watch.starter import Ended, RunStarter

STALE = 120.0
FRESH = 20.0
_MOST_PAUSE = 3600.0


class Start(BaseModel):
    """What became of an order.

    Attributes:
        name: Of the run of this attempt.
        failures: Attempts that failed; one that never began, because another run was under way,
            is none.
        token: Of this writing.
        by: Which watcher wrote it.
        run: The run's id; empty: not known, or not started.
        exit_code: Of the run; None: it has not ended, or never said.
        words: How it ended.
        pause: failed: seconds until the next attempt, from the time that this was written.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["evertrain/start/1"] = "evertrain/start/1"
    key: str
    name: str
    reason: Trigger
    state: Literal["claimed", "started", "failed", "ended"] = "claimed"
    attempt: int = 1
    failures: int = 0
    token: str
    by: str
    run: str = ""
    exit_code: int | None = None
    words: str = ""
    pause: float = 0.0


class Outcome(NamedTuple):
    """How a run ended.

    Attributes:
        again: The same may be tried once more: the world outside failed.
        counts: It was an attempt; else it never began, because another run was under way.
    """

    exit_code: int | None
    words: str
    again: bool
    counts: bool = True


class Progress(NamedTuple):
    """Where an order stands.

    Attributes:
        state: `taken`: another watcher is at it; `pausing`: before the next attempt; `waiting`:
            for another run to end.
        start: None: nothing was written yet.
        wait: Seconds until it is worth asking again.
        news: This call made it so.
        words: What is waited for.
    """

    state: Literal["waiting", "taken", "started", "under_way", "pausing", "ended"]
    start: Start | None
    wait: float
    news: bool = False
    words: str = ""


class Starting:
    """Starts of a project's runs.

    Args:
        store: The project's.
        starter: Who runs them.
        outcome: How a run ended, from its starter's word and its record.
        busy: Says in words which run is under way but for this one; empty: none is.
        by: This watcher, for people.
        retries: Attempts after the first one.
        pause: Seconds before the second attempt; twice as many before each later one.
        clock: Seconds, which nobody sets.
        under_way: Seconds between two looks at a run.
    """

    def __init__(
        self,
        store: ObjectStore,
        starter: RunStarter,
        *,
        outcome: Callable[[Start, Ended], Outcome],
        busy: Callable[[str], str],
        by: str,
        retries: int,
        pause: float,
        clock: Callable[[], float],
        under_way: float = 15.0,
    ) -> None:
        self._store, self._starter, self._outcome = store, starter, outcome
        self._busy = busy
        self._by, self._retries, self._pause = by, retries, pause
        self._clock, self._under_way = clock, under_way
        assert FRESH + starter.late < STALE

    def is_known(self, key: str) -> bool:
        """Whether an order of this key was given before."""
        return self._store.info(_place(key)) is not None

    def is_over(self, key: str) -> bool:
        """Whether an order that was given before has come to its end."""
        return self._read(key)[0].state == "ended"

    def pursue(self, order: Order) -> Progress:
        """Bring an order on as far as it goes now, and say where it stands.

        Raises:
            OutsideError: Store or starter failed; called again, it goes on from there.
        """
        began = self._clock()
        try:
            start, version, age = self._read(order.key)
        except ObjectMissing:
            if others := self._busy(""):
                return Progress("waiting", None, self._under_way, words=others)
            first = Start(key=order.key, name=order.name, reason=order.reason, **self._mine())
            self._store.create(_place(order.key), first.model_dump_json(indent=1).encode())
            start, version, age = self._read(order.key)
            if start.token == first.token:
                return self._launch(order, start, version, began)
        if start.state == "claimed":
            if age < STALE:
                return Progress("taken", start, STALE - age)
            return self._take(order, start, version, began)
        if start.state == "started":
            return self._follow(order, start, version)
        if start.state == "failed":
            if age < start.pause:
                return Progress("pausing", start, start.pause - age)
            if others := self._busy(start.run):
                return Progress("waiting", start, self._under_way, words=others)
            again = start.model_copy(
                update={
                    "attempt": start.attempt + 1,
                    "name": f"{order.name}-{start.attempt + 1}",
                    "run": "",
                }
            )
            return self._take(order, again, version, began)
        return Progress("ended", start, 0.0)

    def _take(self, order: Order, start: Start, version: str, began: float) -> Progress:
        """Claim what nobody is at any more."""
        mine = start.model_copy(update={"state": "claimed", **self._mine()})
        written = self._write(mine, version)
        if written is None:
            return Progress("taken", start, 1.0)
        return self._launch(order, mine, written, began)

    def _launch(self, order: Order, mine: Start, version: str, began: float) -> Progress:
        """Find the run of a claim, or start it."""
        run = self._starter.find(mine.name)
        if run is None:
            if self._clock() - began > FRESH:
                return Progress("taken", mine, STALE)  # by whoever comes first when it is stale
            run = self._starter.start(mine.name, overrides=order.overrides, force=order.force)
        started = mine.model_copy(update={"state": "started", "run": run, **self._mine()})
        if self._write(started, version) is None:
            return Progress("taken", mine, 1.0)  # and found what was started here
        return Progress("started", started, self._under_way, news=True)

    def _follow(self, order: Order, start: Start, version: str) -> Progress:
        """See whether a run has ended, and what follows from how."""
        ended = self._starter.ended(start.name, start.run)
        if ended is None:
            return Progress("under_way", start, self._under_way)
        outcome = self._outcome(start, ended)
        failures = start.failures + outcome.counts
        again = outcome.again and failures <= self._retries
        after = start.model_copy(
            update={
                "state": "failed" if again else "ended",
                "exit_code": outcome.exit_code,
                "words": outcome.words,
                "failures": failures,
                "pause": self._next_pause(failures) if outcome.counts else 0.0,
                **self._mine(),
            }
        )
        if self._write(after, version) is None:
            return Progress("taken", start, 1.0)
        if again:
            return Progress("pausing", after, after.pause, news=True)
        return Progress("ended", after, 0.0, news=True)

    def _next_pause(self, failures: int) -> float:
        return min(self._pause * 2.0 ** min(failures - 1, 20), _MOST_PAUSE)

    def _mine(self) -> dict[str, Any]:
        return {"token": uuid.uuid4().hex, "by": self._by}

    def _read(self, key: str) -> tuple[Start, str, float]:
        read = self._store.read(_place(key))
        try:
            return Start.model_validate_json(read.data), read.version, read.age
        except ValidationError as error:
            raise ObjectDamaged(
                f"{_place(key)} in {self._store.uri} cannot be read ({error.error_count()} faults)",
                hint="it was damaged, or written by a newer version; removed, its run may be "
                "started once more",
            ) from error

    def _write(self, start: Start, version: str) -> str | None:
        content = start.model_dump_json(indent=1).encode()
        return self._store.replace(_place(start.key), content, version=version)


def _place(key: str) -> str:
    return f"starts/{key}.json"
