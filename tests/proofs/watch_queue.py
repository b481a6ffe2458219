"""The queue of simulated watchers: it delivers twice, late, in any order, or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from infra.errors import OutsideError
from tests.proofs.simulation import World
from tests.proofs.watch_world import Fate, Outages


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
