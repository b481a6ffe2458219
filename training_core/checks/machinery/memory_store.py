"""Checkpoints in memory: an object store that a check can throw away."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from training_core.checkpoints.catalogue import Checkpoints


@dataclass(frozen=True)
class _Entry:
    key: str


class MemoryStore:
    """Objects in a dict (see `training_core.checkpoints.store.CheckpointStore`)."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    def put(self, key: str, data: bytes | memoryview) -> None:
        self._objects[key] = bytes(data)

    def create(self, key: str, data: bytes) -> bool:
        return self._objects.setdefault(key, data) is data

    def get(self, key: str) -> bytes:
        return self._objects[key]

    def pieces(self, key: str) -> Iterator[bytes]:
        yield self.get(key)

    def list(self, prefix: str = "") -> Iterator[_Entry]:
        yield from [_Entry(key) for key in sorted(self._objects) if key.startswith(prefix)]

    def delete(self, key: str) -> None:
        self._objects.pop(key, None)


def checkpoints_in_memory() -> Checkpoints:
    """Return checkpoints that are gone with the object."""
    return Checkpoints(
        MemoryStore(), "check", on_report=lambda words: print(words, file=sys.stderr)
    )
