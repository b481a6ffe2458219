"""Who fights for a lease: contenders that die, sleep, hear nothing and have clocks of their own."""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Literal, Self

from infra import lease_record
from infra.errors import LeaseLost, OutsideError
from infra.lease import Lease, boot_seconds
from infra.lease_record import Grant, Holder, Seen
from infra.store import ObjectStore

SECONDS = 5.0  # the shortest that a lease may live
End = Literal["lives", "killed", "crashes", "stopped", "stops_itself"]


class Crash(BaseException):
    """The contender is gone: nothing that it meant to do afterwards happens."""


class Notes:
    """What contenders believe, a line each time, by the clock that all processes share."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)

    def add(self, who: str, what: str, token: int, at: float) -> None:
        line = json.dumps({"who": who, "what": what, "token": token, "at": at}) + "\n"
        os.write(self._file, line.encode())


class Resource:
    """Takes writes with a token, and none that is lower than the highest that it has seen.

    As the promotion log does. It does not know the lease; what it took and what it refused stands
    in a file in the order in which it came.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, who: str, token: int, what: str = "write") -> bool:
        with self._path.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            taken = [line for line in map(json.loads, file) if line["taken"]]
            is_taken = token >= max((line["token"] for line in taken), default=0)
            said = {"who": who, "token": token, "what": what, "taken": is_taken}
            file.write(json.dumps({**said, "at": boot_seconds()}) + "\n")
            file.flush()
        return is_taken


@dataclass
class Weather:
    """What a store does to its user.

    Attributes:
        slow: Seconds that an operation takes at most, most of the time.
        stuck: Share of the operations that take up to as long as a holder may believe.
        lost: Share of the writes that are made, and whose reply does not come.
        refused: Share of the writes that are not made.
        late: Share of the writes that are given up, and made a while later.
    """

    slow: float = 0.0
    stuck: float = 0.0
    lost: float = 0.0
    refused: float = 0.0
    late: float = 0.0


class StormyStore:
    """A store in bad weather, whose user may die at any operation."""

    def __init__(
        self, store: ObjectStore, weather: Weather, chance: random.Random, *, dies_at: int = 0
    ) -> None:
        self.uri, self._store = store.uri, store
        self._weather, self._chance = weather, chance
        self._left, self._dead, self.lost = dies_at, False, 0

    def read(self, key: str) -> Any:
        self._pause()
        return self._step(lambda: self._store.read(key))

    def create(self, key: str, data: bytes) -> bool:
        return bool(self._write(lambda: self._store.create(key, data)))

    def replace(self, key: str, data: bytes, *, version: str) -> str | None:
        found: str | None = self._write(lambda: self._store.replace(key, data, version=version))
        return found

    def _pause(self) -> None:
        if self._chance.random() < self._weather.stuck:
            time.sleep(self._chance.uniform(0, SECONDS - 1))
        elif self._weather.slow:
            time.sleep(self._chance.uniform(0, self._weather.slow))

    def _write(self, make: Callable[[], Any]) -> Any:
        self._pause()
        fate, weather = self._chance.random(), self._weather
        if fate < weather.lost:
            self._step(make)
            self.lost += 1
            raise OutsideError("the reply was lost")
        if fate < weather.lost + weather.refused:
            raise OutsideError("the store could not be reached")
        if fate < weather.lost + weather.refused + weather.late:
            timer = threading.Timer(self._chance.uniform(0.2, SECONDS + 1), make)
            timer.daemon = True
            timer.start()
            self.lost += 1
            raise OutsideError("the store took too long")
        done = self._step(make)
        self._pause()
        return done

    def _step(self, make: Callable[[], Any]) -> Any:
        """Do something at the store; whoever is to die here may have done it or not."""
        if self._dead:
            raise Crash
        self._left -= 1
        self._dead = self._left == 0
        if self._dead and self._chance.random() < 0.5:
            raise Crash
        done = make()
        if self._dead:
            raise Crash
        return done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@dataclass
class Contender:
    """One that wants the lease several times, holds it for a while and writes to the resource.

    Attributes:
        end: What becomes of it; `killed` and `stopped` come from outside, at any moment.
        patience: Seconds that it tries.
        skew: Seconds by which its wall clock is wrong.
        rate: Of its own clock, whose origin is its own too.
    """

    name: str
    seed: int
    folder: Path
    end: End = "lives"
    rounds: int = 2
    patience: float = 25.0
    weather: Weather = field(default_factory=Weather)
    skew: float = 0.0
    rate: float = 1.0

    def run(self, open_store: Callable[[], ObjectStore]) -> None:
        """Fight to the end, or to this one's own."""
        self.chance = random.Random(self.seed)
        dies_at = self.chance.randint(2, 25) if self.end == "crashes" else 0
        store = StormyStore(open_store(), self.weather, self.chance, dies_at=dies_at)
        origin = self.chance.uniform(-1e6, 1e6)
        clock = lambda: origin + boot_seconds() * self.rate  # noqa: E731
        self.lease = Lease(store, clock=clock)
        self.notes = Notes(self.folder / "beliefs")
        self.resource = Resource(self.folder / "resource")
        self.stops = self.chance.randint(1, 6) if self.end == "stops_itself" else 0
        self.where = self.chance.choice(["before it looks at the clock", "before it writes"])
        until = boot_seconds() + self.patience
        with suppress(Crash):
            for number in range(self.rounds):
                grant = self._take(Holder(run=f"{self.name}-{number}"), until)
                if grant is not None:
                    self._hold(grant)
                time.sleep(self.chance.uniform(0, 0.3))
        self.notes.add(self.name, "lost", store.lost, boot_seconds())

    def _take(self, holder: Holder, until: float) -> Grant | None:
        while boot_seconds() < until:
            try:
                got = self.lease.take(holder, seconds=SECONDS)
                if isinstance(got, Seen):
                    time.sleep(self.chance.uniform(0.02, 0.3))
                    continue
                if got.fence:  # whoever had it before may still believe
                    self.resource.write(self.name, got.token, "fence")
                    got = self.lease.renew(got, seconds=SECONDS, fenced=True)
                    self.notes.add(self.name, "took over", got.token, boot_seconds())
            except OutsideError:
                continue
            return got
        return None

    def _hold(self, grant: Grant) -> None:
        self.notes.add(self.name, "took", grant.token, boot_seconds())
        beside = self.chance.random() < 0.2
        if beside:  # another process of the same run, as steps that run side by side
            seed, name = self.chance.random(), f"{self.name} beside"
            other = threading.Thread(target=self._beside, args=(grant.holder, seed, name))
            other.start()
        try:
            self._work(grant, self.chance, self.name)
        finally:
            if beside:
                other.join()
        for _ in range(20):
            with suppress(OutsideError):
                self.lease.release(grant.holder.run)
                return

    def _beside(self, holder: Holder, seed: float, name: str) -> None:
        with suppress(OutsideError, Crash):
            grant = self.lease.resume(holder, seconds=SECONDS)
            if grant is not None:
                self._work(grant, random.Random(seed), name)

    def _work(self, grant: Grant, chance: random.Random, name: str) -> None:
        end = boot_seconds() + chance.choice([0, 0.1, 0.5, 1, 2, 4])
        renewed = boot_seconds()
        while boot_seconds() < end:
            self._stop_here("before it looks at the clock")
            now = boot_seconds()
            believes = self.lease.clock() < grant.until
            if believes:
                self.notes.add(name, "holds", grant.token, now)
                if chance.random() < 0.3:
                    self._stop_here("before it writes")
                    self.resource.write(name, grant.token)
            if not believes or now - renewed > SECONDS / 3:
                try:
                    grant = self.lease.renew(grant, seconds=SECONDS)
                    renewed = now
                except LeaseLost:
                    return
                except OutsideError:
                    pass
            time.sleep(chance.uniform(0.01, 0.05))

    def _stop_here(self, where: str) -> None:
        """Be paused: just before a look at the clock or, which is worst, between it and a write."""
        if where != self.where:
            return
        self.stops -= 1
        if self.stops == 0:
            self.notes.add(self.name, "stopped", 0, boot_seconds())
            os.kill(os.getpid(), signal.SIGSTOP)


class Skewed(datetime):
    """A wall clock that is wrong."""

    by = 0.0

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return super().now(tz) + timedelta(seconds=cls.by)


def skew_wall_clock(seconds: float) -> None:
    """Let this process's wall clock be wrong, where the lease could look."""
    real = time.time
    Skewed.by = seconds
    lease_record.datetime = Skewed  # type: ignore[attr-defined]
    time.time = lambda: real() + seconds
