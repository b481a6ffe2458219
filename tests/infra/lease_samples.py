"""A store whose clock goes on at will, and that loses replies; who holds a lease in tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from infra.errors import OutsideError
from infra.lease_record import Grant, Holder, Seen
from infra.store import ObjectStore, Versioned

ONE, TWO = Holder(run="one", who="eve", where="laptop", how="evertrain run"), Holder(run="two")


class Aged:
    """A store whose clock has gone on by so many seconds since anything was written."""

    def __init__(self, store: ObjectStore, by: float = 0.0) -> None:
        self._store, self.by = store, by
        self.before_write: Callable[[], None] = lambda: None
        self.lose_replies = 0

    def read(self, key: str) -> Versioned:
        read = self._store.read(key)
        return read._replace(age=read.age + self.by)

    def replace(self, key: str, data: bytes, *, version: str) -> str | None:
        self.before_write()
        written = self._store.replace(key, data, version=version)
        if self.lose_replies:
            self.lose_replies -= 1
            raise OutsideError("the reply was lost")
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def granted(got: Grant | Seen) -> Grant:
    assert isinstance(got, Grant)
    return got
