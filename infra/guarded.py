"""A store that asks before every write whether its user still may."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from infra.store import ObjectInfo, ObjectStore, Versioned


class GuardedStore:
    """Another store; nothing is written to it unless the question before is answered.

    Args:
        store: Where objects are.
        may_write: Raises if its user may not write any more.
    """

    def __init__(self, store: ObjectStore, may_write: Callable[[], None]) -> None:
        self.uri, self._store, self._may_write = store.uri, store, may_write

    def put(self, key: str, data: bytes | memoryview) -> None:
        self._may_write()
        self._store.put(key, data)

    def put_file(self, key: str, path: Path) -> None:
        self._may_write()
        self._store.put_file(key, path)

    def create(self, key: str, data: bytes) -> bool:
        self._may_write()
        return self._store.create(key, data)

    def replace(self, key: str, data: bytes, *, version: str) -> str | None:
        self._may_write()
        return self._store.replace(key, data, version=version)

    def delete(self, key: str) -> None:
        self._may_write()
        self._store.delete(key)

    def get(self, key: str) -> bytes:
        return self._store.get(key)

    def read(self, key: str) -> Versioned:
        return self._store.read(key)

    def pieces(self, key: str) -> Iterator[bytes]:
        return self._store.pieces(key)

    def get_file(self, key: str, path: Path) -> None:
        self._store.get_file(key, path)

    def fetch(self, key: str, path: Path, *, version: str = "", version_id: str = "") -> str:
        return self._store.fetch(key, path, version=version, version_id=version_id)

    def info(self, key: str) -> ObjectInfo | None:
        return self._store.info(key)

    def list(self, prefix: str = "", *, after: str = "") -> Iterator[ObjectInfo]:
        return self._store.list(prefix, after=after)
