"""What checkpoints need of an object store: declared here, given by a component."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class StoredObject(Protocol):
    """An entry of a listing."""

    @property
    def key(self) -> str:
        """Its key."""


class CheckpointStore(Protocol):
    """Objects by key; writes are atomic: a reader sees a whole object or none."""

    def put(self, key: str, data: bytes | memoryview) -> None:
        """Write an object, without a second copy of it in memory."""

    def create(self, key: str, data: bytes) -> bool:
        """Write an object only if none has this key; say whether this call wrote it."""

    def get(self, key: str) -> bytes:
        """Read an object; LookupError if there is none (any other error: the store is away)."""

    def pieces(self, key: str) -> Iterator[bytes]:
        """Read an object piece by piece, for those too large to hold twice; errors as in `get`."""

    def list(self, prefix: str = "") -> Iterator[StoredObject]:
        """List objects by prefix."""

    def delete(self, key: str) -> None:
        """Remove an object."""
