"""A run on this machine under a name, as one object: that it began, lives, and how it ended.

Whoever creates the object is the run of that name; every other process that would be lets it be.
"""

from __future__ import annotations

import threading
import uuid
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from infra.errors import ObjectMissing, OutsideError
from infra.store import ObjectStore

BEAT = 5.0  # seconds between two signs of life
GONE = 45.0  # seconds without one after which the run was killed


class Mark(BaseModel):
    """The object's content.

    Attributes:
        exit_code: None: it has not ended.
        words: Why it ended so, where no record says it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["evertrain/local-run/1"] = "evertrain/local-run/1"
    run: str
    token: str
    exit_code: int | None = None
    words: str = ""


class Seen(NamedTuple):
    """A mark as it was read; `age`: seconds since it was written, by the store's clock."""

    mark: Mark
    age: float


def read_mark(store: ObjectStore, name: str) -> Seen | None:
    """Return the mark of a name; None: no run of that name has begun."""
    try:
        read = store.read(_place(name))
        return Seen(Mark.model_validate_json(read.data), read.age)
    except ObjectMissing:
        return None


class OwnMark:
    """The mark of the run that this process is.

    Args:
        store: The project's.
        name: Of the run.
    """

    def __init__(self, store: ObjectStore, name: str) -> None:
        self._store, self._place = store, _place(name)
        self._version = ""
        self._over = threading.Event()
        self._beating = threading.Thread(target=self._beat, daemon=True)

    @property
    def is_taken(self) -> bool:
        """Whether this process is the run of its name."""
        return bool(self._version)

    def take(self, run: str) -> str:
        """Say that a run begins; return the id of this name's run: this one's, or another's."""
        mine = Mark(run=run, token=uuid.uuid4().hex)
        self._store.create(self._place, _written(mine))
        read = self._store.read(self._place)
        there = Mark.model_validate_json(read.data)
        if there.token == mine.token:
            self._mark, self._version = mine, read.version
            self._beating.start()
        return there.run

    def end(self, exit_code: int, words: str = "") -> None:
        """Say how the run ended, if this process is it."""
        if not self._version:
            return
        self._over.set()
        self._beating.join()
        self._write(self._mark.model_copy(update={"exit_code": exit_code, "words": words}))

    def _beat(self) -> None:
        while not self._over.wait(BEAT):
            try:
                self._write(self._mark)
            except OutsideError:  # it is tried again in a moment
                continue

    def _write(self, mark: Mark) -> None:
        content = _written(mark.model_copy(update={"token": uuid.uuid4().hex}))
        version = self._store.replace(self._place, content, version=self._version)
        # nobody else writes here: what was lost was the reply
        self._version = version or self._store.read(self._place).version


def _written(mark: Mark) -> bytes:
    return mark.model_dump_json(indent=1).encode()


def _place(name: str) -> str:
    return f"watch/runs/{name}.json"
