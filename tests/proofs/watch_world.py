"""The world of simulated watchers: stores, a queue, a Kubeflow, and what goes wrong there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from infra.errors import ObjectMissing, OutsideError
from infra.store import ObjectInfo, Versioned
from tests.proofs.simulation import World

STORM = 3600.0  # seconds in which things come and go wrong
LATE = 80.0  # seconds until a start that was given up on has its effect, at most
PAGE = 10  # objects of a listing that are seen at one time


class Died(BaseException):
    """The process was killed."""


@dataclass
class Fate:
    """What becomes of one process, and of its calls.

    Attributes:
        die_at: Number of the call at which it is killed; 0: never.
        after: Killed after the call had its effect, else before.
        lost: Share of writes whose reply is lost after they had their effect; of reads a tenth.
        stalls: Share of calls after which the process stands still for minutes.
        until: When nothing is lost any more, and nothing stands still.
        slow: The longest a call takes, seconds, each way.
    """

    world: World
    die_at: int = 0
    after: bool = False
    lost: float = 0.0
    stalls: float = 0.0
    until: float = float("inf")
    slow: float = 0.3
    calls: int = 0

    @property
    def loses(self) -> float:
        """Share of writes whose reply is lost now."""
        return self.lost if self.world.now < self.until else 0.0

    def call(self, down: Callable[[], bool], effect: Callable[[], Any], *, writes: bool) -> Any:
        """Make a call to a server: time passes on the way there and back, and much may go wrong."""
        world, chance = self.world, self.world.chance
        self.calls += 1
        mortal = self.calls == self.die_at
        world.sleep(chance.uniform(0, self.slow))
        if mortal and not self.after:
            raise Died
        if down():
            world.sleep(chance.uniform(0, 5))
            raise OutsideError("the server is away")
        result = effect()
        if mortal:
            raise Died
        world.sleep(chance.uniform(0, self.slow))
        if chance.random() < self.stalls and world.now < self.until:
            world.sleep(chance.uniform(10, 300))
        if chance.random() < self.loses * (1.0 if writes else 0.1):
            raise OutsideError("the reply was lost")
        return result


@dataclass
class _Kept:
    data: bytes
    version: str
    at: float


@dataclass
class Outages:
    """When a server is away: pairs of begin and end."""

    spans: list[tuple[float, float]] = field(default_factory=list)

    def at(self, now: float) -> bool:
        return any(begin <= now < end for begin, end in self.spans)


class Shelf:
    """The objects of a bucket, as the server has them: versions are hashes, ages its own."""

    def __init__(self, world: World, outages: Outages) -> None:
        self.world, self.outages = world, outages
        self.kept: dict[str, _Kept] = {}

    def put(self, key: str, data: bytes) -> None:
        """Write at once, whatever is away."""
        version = hashlib.md5(data, usedforsecurity=False).hexdigest()
        self.kept[key] = _Kept(data, version, self.world.now)


class SimulatedStore:
    """A bucket as one process reaches it; an `ObjectStore`, as far as watchers use one."""

    def __init__(self, shelf: Shelf, fate: Fate) -> None:
        self.uri = "s3://simulated"
        self._shelf, self._fate, self._world = shelf, fate, shelf.world

    def _call(self, effect: Callable[[], Any], *, writes: bool = False) -> Any:
        outages = self._shelf.outages
        return self._fate.call(lambda: outages.at(self._world.now), effect, writes=writes)

    def create(self, key: str, data: bytes) -> bool:
        def effect() -> bool:
            if key in self._shelf.kept:
                return False
            self._shelf.put(key, data)
            return True

        return bool(self._call(effect, writes=True))

    def replace(self, key: str, data: bytes, *, version: str) -> str | None:
        def effect() -> str | None:
            there = self._shelf.kept.get(key)
            if there is None or there.version != version:
                return None
            self._shelf.put(key, data)
            return self._shelf.kept[key].version

        found: str | None = self._call(effect, writes=True)
        return found

    def get(self, key: str) -> bytes:
        return self.read(key).data

    def read(self, key: str) -> Versioned:
        def effect() -> Versioned | None:
            there = self._shelf.kept.get(key)
            if there is None:
                return None
            # dates of S3 have whole seconds: the age is said to within one
            age = float(int(self._world.now) - int(there.at))
            return Versioned(there.data, there.version, max(age, 0.0))

        found: Versioned | None = self._call(effect)
        if found is None:
            raise ObjectMissing(f"there is no {key}")
        return found

    def info(self, key: str) -> ObjectInfo | None:
        def effect() -> ObjectInfo | None:
            there = self._shelf.kept.get(key)
            return ObjectInfo(key, len(there.data), there.version) if there else None

        found: ObjectInfo | None = self._call(effect)
        return found

    def list(self, prefix: str = "", *, after: str = "") -> Iterator[ObjectInfo]:
        """Page by page, and the world goes on between two pages."""
        while True:

            def effect(after: str = after) -> list[ObjectInfo]:
                keys = sorted(k for k in self._shelf.kept if k.startswith(prefix) and k > after)
                there = [(key, self._shelf.kept[key]) for key in keys[:PAGE]]
                return [ObjectInfo(key, len(kept.data), kept.version) for key, kept in there]

            page: list[ObjectInfo] = self._call(effect)
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].key

    def delete(self, key: str) -> None:
        self._call(lambda: self._shelf.kept.pop(key, None), writes=True)
