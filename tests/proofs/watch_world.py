"""The world of simulated watchers: stores, a queue, a Kubeflow, and what goes wrong there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from components.common.advice import Advice
from components.common.run_record import RunRecord, run_record_key
from infra.errors import ObjectMissing, OutsideError
from infra.store import ObjectInfo, Versioned
from pipelines.watch.starter import Ended
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


@dataclass
class _Message:
    body: str
    visible: float


class SimulatedQueue:
    """An SQS queue: at least once, in any order, now and then twice or never."""

    def __init__(self, world: World, outages: Outages, *, visibility: float = 30.0) -> None:
        self.world, self.outages, self.visibility = world, outages, visibility
        self.lost = self.twice = 0.0
        self.slowest = 1.0
        self._messages: dict[str, _Message] = {}
        self._number = 0

    def send(self, body: str) -> None:
        """Deliver a message some time later, or twice, or never."""
        chance = self.world.chance
        if chance.random() < self.lost:
            return
        for _ in range(2 if chance.random() < self.twice else 1):
            self._number += 1
            late = chance.uniform(0, self.slowest if chance.random() < 0.9 else 60 * self.slowest)
            self._messages[str(self._number)] = _Message(body, self.world.now + late)

    def tell_of(self, bucket: str, key: str, *, event: str = "ObjectCreated:Put") -> None:
        """Send what S3 writes when an object came."""
        self._number += 1
        record = {
            "eventName": event, "eventTime": "2026-01-01T00:00:00.000Z",
            "s3": {"bucket": {"name": bucket},
                   "object": {"key": key, "sequencer": f"{self._number:016X}"}},
        }  # fmt: skip
        self.send(json.dumps({"Records": [record]}))

    def client(self, fate: Fate) -> Any:
        """boto3's client, as one process has it."""
        return _QueueClient(self, fate)

    def has_some(self) -> bool:
        return any(m.visible <= self.world.now for m in self._messages.values())

    def take(self, most: int) -> list[dict[str, str]]:
        now = self.world.now
        ready = [number for number, m in self._messages.items() if m.visible <= now]
        self.world.chance.shuffle(ready)
        for number in ready[:most]:
            self._messages[number].visible = now + self.visibility
        return [{"ReceiptHandle": n, "Body": self._messages[n].body} for n in ready[:most]]

    def forget(self, receipts: list[str]) -> None:
        for receipt in receipts:
            self._messages.pop(receipt, None)


class _QueueClient:
    def __init__(self, queue: SimulatedQueue, fate: Fate) -> None:
        self._queue, self._fate = queue, fate

    def _call(self, effect: Callable[[], Any], *, writes: bool) -> Any:
        queue = self._queue
        try:
            return self._fate.call(lambda: queue.outages.at(queue.world.now), effect, writes=writes)
        except OutsideError as error:  # as boto3 says it
            from botocore.exceptions import EndpointConnectionError

            raise EndpointConnectionError(endpoint_url="queue") from error

    def receive_message(self, **asked: Any) -> dict[str, Any]:
        queue, world = self._queue, self._queue.world
        until = world.now + asked["WaitTimeSeconds"]
        while world.now < until and not queue.has_some():
            world.sleep(min(2.0, until - world.now))
        found = self._call(lambda: queue.take(asked["MaxNumberOfMessages"]), writes=True)
        return {"Messages": found}

    def delete_message_batch(self, **asked: Any) -> None:
        receipts = [entry["ReceiptHandle"] for entry in asked["Entries"]]
        self._call(lambda: self._queue.forget(receipts), writes=True)


class SimulatedAdvising:
    """A process that finds drift wherever it looks, after a while; now and then it fails."""

    def __init__(self, world: World) -> None:
        self._world, self._until = world, 0.0
        self.under_way = False

    def begin(self) -> None:
        self.under_way = True
        self._until = self._world.now + self._world.chance.uniform(1, 20)

    def result(self) -> Advice | None:
        if self._world.now < self._until:
            return None
        self.under_way = False
        if self._world.now < STORM and self._world.chance.random() < 0.1:
            raise OutsideError("it was killed")
        return Advice(
            advice="retrain", retrain=True, gain=None, worth=0.0, reasons=["it has moved"],
            unknown=[], moved=True,
        )  # fmt: skip

    def close(self) -> None:
        self.under_way = False


@dataclass
class SimulatedRun:
    """A run: whoever started it, when, and how it will end."""

    id: str
    name: str
    begun: float
    ends: float
    exit_code: int | None
    skipped: bool = False


class SimulatedKubeflow:
    """Runs by name; one name may be started often, and each is kept."""

    def __init__(self, world: World, outages: Outages, shelf: Shelf) -> None:
        self.world, self.outages, self.shelf = world, outages, shelf
        self.runs: list[SimulatedRun] = []
        self.longest = 120.0
        self.failing = 0.0

    def begin(self, name: str) -> str:
        """Start a run now; one that finds another under way ends at once."""
        world, chance = self.world, self.world.chance
        ends = world.now + chance.uniform(1, self.longest)
        code = chance.choices([0, 1, 3, None], [1, self.failing / 3, self.failing, self.failing])[0]
        run = SimulatedRun(f"run-{len(self.runs)}", name, world.now, ends, code)
        if self.under_way():
            run.skipped, run.exit_code, run.ends = True, 0, world.now + 2
        self.runs.append(run)
        if run.exit_code is not None:
            world.add(run.id, lambda: self._write(run), after=run.ends - world.now - 0.5)
        return run.id

    def under_way(self) -> SimulatedRun | None:
        now = self.world.now
        return next((r for r in self.runs if not r.skipped and r.begun <= now < r.ends), None)

    def _write(self, run: SimulatedRun) -> None:
        """The record that the run's exit handler leaves; a run that was killed leaves none."""
        status = {0: "finished", 1: "stopped", 3: "failed"}[run.exit_code or 0]
        record = RunRecord(
            run=run.id, project="simulated", key="", status=status,  # type: ignore[arg-type]
            exit_code=run.exit_code or 0, verdict="", reasons=["as drawn"], hint="", started=None,
            seconds=0, data_digest="", data_rows=0, steps=[], champion_before="",
            champion_after="", commit="", report="",
        ).model_dump(mode="json")  # fmt: skip
        if run.skipped:
            record["status"] = "skipped"
        self.shelf.put(run_record_key(run.id), json.dumps(record).encode())


class SimulatedStarter:
    """Kubeflow as one process reaches it; a `RunStarter`."""

    about, glance, late = "a simulation", 15.0, LATE

    def __init__(self, kubeflow: SimulatedKubeflow, fate: Fate) -> None:
        self._kubeflow, self._fate = kubeflow, fate

    def _call(self, effect: Callable[[], Any], *, writes: bool = False) -> Any:
        outages, world = self._kubeflow.outages, self._kubeflow.world
        return self._fate.call(lambda: outages.at(world.now), effect, writes=writes)

    def find(self, name: str) -> str | None:
        runs = self._kubeflow.runs
        found: str | None = self._call(lambda: next((r.id for r in runs if r.name == name), None))
        world, fate = self._kubeflow.world, self._fate
        if fate.stalls and world.now < fate.until and world.chance.random() < 0.1:
            world.sleep(world.chance.uniform(100, 200))  # the worst moment to stand still
        return found

    def start(self, name: str, *, overrides: tuple[str, ...], force: bool) -> str:
        world = self._kubeflow.world
        if world.chance.random() < self._fate.loses and not self._kubeflow.outages.at(world.now):
            # the request is on its way for long; who sent it gives up before
            wait = world.chance.uniform(1, LATE)
            world.add("late", lambda: self._begin(name), after=wait)
            world.sleep(min(wait, 30.0))
            raise OutsideError("no answer in time")
        found: str = self._call(lambda: self._kubeflow.begin(name), writes=True)
        return found

    def ended(self, name: str, run: str) -> Ended | None:
        def effect() -> Ended | None:
            there = next(r for r in self._kubeflow.runs if r.id == run)
            if self._kubeflow.world.now < there.ends:
                return None
            return Ended(0 if there.exit_code == 0 else None)

        found: Ended | None = self._call(effect)
        return found

    def prepare(self) -> None:
        """It is there, or will be."""

    def close(self) -> None:
        """Nothing is kept."""

    def _begin(self, name: str) -> None:
        self._kubeflow.begin(name)
