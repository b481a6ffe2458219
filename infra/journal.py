"""A journal on an object store: entries in one order, added by many processes, read by all.

    journal = Journal(store, "tune/1f3a/journal")
    journal.append([{"say": "this"}])          # atomic: all of these, next to each other, or none
    journal.read(0)                            # every entry so far, oldest first

Each append is one object with the next number, created only if none has it: of two processes that
want the same number one takes the next. What is written is never changed, so a reader keeps what it
has read and asks only for what came after. A process that is killed leaves a whole object or none.
"""

from __future__ import annotations

import json
import random
import time
from typing import Any

from infra.errors import ObjectDamaged, OutsideError
from infra.store import ObjectStore

_TRIES = 200  # other processes that may take the next number in between


class Journal:
    """Entries below a prefix, each a plain dict.

    Args:
        store: Its conditional writes have to work.
        prefix: Of the objects, without a slash at the end.

    Raises:
        OutsideError: The store cannot be reached, or too many others write.
        ObjectDamaged: An object is missing, or is no part of a journal.
    """

    def __init__(self, store: ObjectStore, prefix: str) -> None:
        self.store, self.prefix = store, prefix
        self._entries: list[dict[str, Any]] = []
        self._objects = 0

    def append(self, entries: list[dict[str, Any]]) -> None:
        """Add entries at the end, all or none."""
        data = json.dumps(entries, separators=(",", ":")).encode()
        for attempt in range(_TRIES):
            if self.store.create(self._key(self._objects + 1), data):
                return
            self._catch_up()
            time.sleep(random.uniform(0, min(0.005 * attempt, 0.2)))  # noqa: S311
        raise OutsideError(
            f"the journal {self.prefix} in {self.store.uri} could not be written: others took "
            f"{_TRIES} numbers in between",
            hint="run the same command again, with fewer processes",
        )

    def read(self, start: int) -> list[dict[str, Any]]:
        """Return the entries from the `start`-th on, counted from 0."""
        self._catch_up()
        return self._entries[start:]

    def _catch_up(self) -> None:
        last = self._key(self._objects) if self._objects else ""
        for info in self.store.list(f"{self.prefix}/", after=last):
            if info.key != self._key(self._objects + 1):
                raise ObjectDamaged(
                    f"the journal {self.prefix} in {self.store.uri} is not whole: "
                    f"{self._key(self._objects + 1)} is missing before {info.key}",
                    hint="restore it from a backup, or remove the whole prefix to begin afresh",
                )
            self._entries += self._parsed(info.key)
            self._objects += 1

    def _parsed(self, key: str) -> list[dict[str, Any]]:
        try:
            found = json.loads(self.store.get(key))
            if isinstance(found, list) and all(isinstance(entry, dict) for entry in found):
                return found
        except ValueError:
            pass
        raise ObjectDamaged(
            f"{key} in {self.store.uri} is no entry of a journal",
            hint="restore it from a backup, or remove the whole prefix to begin afresh",
        )

    def _key(self, number: int) -> str:
        return f"{self.prefix}/{number:08d}.json"
