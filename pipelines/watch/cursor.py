"""What the watchers of a project know together: one object, replaced by compare-and-swap.

    cursors = Cursors(store)
    cursor = cursors.update(lambda c: c.heard(3, at=now))

Any number of watchers may run: each acts on what is written here, and a change that somebody else
overtook is made again on what is there by then. Spans of time are kept, not moments: how long ago
the object was written, the store says by its own clock, so no watcher's clock matters.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from components.common.trigger_settings import Trigger
from infra.errors import ObjectDamaged, ObjectMissing, OutsideError
from infra.lease import boot_seconds
from infra.store import ObjectStore

KEY = "watch/cursor.json"
_ATTEMPTS = 50


class _Kept(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    def with_(self, **changes: Any) -> Self:
        """Return it with other values."""
        return self.model_copy(update=changes)


class Pending(_Kept):
    """What came, and no run has been started for.

    Attributes:
        waited: Seconds since the first of it, when this was written.
        quiet: Seconds since the last of it, when this was written.
        count: New objects, as the last look counted them; until then, events.
        version: Of the data, as the last look found it; empty: something came since.
        since: When the first of it came, Unix time by its own source: for figures alone.
    """

    waited: float = 0.0
    quiet: float = 0.0
    count: int = 0
    version: str = ""
    since: float = 0.0


class Order(_Kept):
    """A run that shall be started, once.

    Attributes:
        key: Names it: the data's version, or a schedule and its due time.
        name: Of the run; what a second try is called is made of it.
        reason: Why.
        words: Why, for people.
        overrides, force: As `evertrain run` has them.
        since: When what led to it came, Unix time; 0: not known.
    """

    key: str
    name: str
    reason: Trigger
    words: str
    overrides: tuple[str, ...] = ()
    force: bool = False
    since: float = 0.0


class Cursor(_Kept):
    """What is known.

    Attributes:
        token: Of this writing: no two contents are equal.
        version: Of the data that the last run was started for; what is new is counted from it.
        pending: None: nothing waits for a run.
        order: The run that is being started, or is under way; None: there is none.
        heard: Events so far: tells whether one came while somebody looked.
        since_look: Seconds since all was listed, when this was written; None: never.
        since_advice: The same of the last look for drift and decay.
        fired: By schedule, the last due time that was taken, or when it was first seen.
    """

    format: Literal["evertrain/watch/1"] = "evertrain/watch/1"
    token: str = ""
    version: str = ""
    pending: Pending | None = None
    order: Order | None = None
    heard: int = 0
    since_look: float | None = None
    since_advice: float | None = None
    fired: dict[str, datetime] = Field(default_factory=dict)

    def aged(self, seconds: float) -> Cursor:
        """Return it as it is so many seconds later."""
        pending = self.pending
        if pending is not None:
            pending = pending.with_(waited=pending.waited + seconds, quiet=pending.quiet + seconds)
        spans = {
            name: None if span is None else span + seconds
            for name, span in (
                ("since_look", self.since_look),
                ("since_advice", self.since_advice),
            )
        }
        return self.with_(pending=pending, **spans)

    def with_events(self, count: int, *, at: float) -> Cursor:
        """Return it after so many events, the first of them at a time."""
        before = self.pending or Pending(since=at)
        pending = before.with_(quiet=0.0, version="", count=before.count + count)
        return self.with_(pending=pending, heard=self.heard + count)

    def with_look(self, version: str, *, new: int, heard: int, at: float) -> Cursor:
        """Return it after a look found a version of the data that had no run.

        Args:
            version: What was found.
            new: How many of its objects are new.
            heard: `heard` when the look began.
            at: Unix time of the look.
        """
        before, looked = self.pending, self.with_(since_look=0.0)
        if self.heard != heard:
            return looked  # something came meanwhile: what was seen may be old by now
        if self.version == version:
            return looked  # somebody else was faster
        if not new:
            return looked.with_(pending=None)
        same = before is not None and before.version in ("", version)
        pending = (before or Pending(since=at)).with_(version=version, count=new)
        return looked.with_(pending=pending if same else pending.with_(quiet=0.0))

    def with_known(self, version: str, *, heard: int) -> Cursor:
        """Return it after a look found a version that had its run, or no data (`version` "")."""
        looked = self.with_(since_look=0.0)
        if self.heard != heard:
            return looked
        return looked.with_(pending=None, version=version or self.version)


class Cursors:
    """The cursor of a project's watchers.

    Every method raises `OutsideError` when the store cannot be reached, and `ObjectDamaged` when
    what is there is no cursor.

    Args:
        store: The project's.
        clock: Seconds, which nobody sets.
        sleep: Waits so many seconds.
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        clock: Callable[[], float] = boot_seconds,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store, self._clock, self._sleep = store, clock, sleep
        # The store says an age to within a second; from one reading on this process knows better.
        self._version, self._written = "", 0.0

    def read(self) -> Cursor:
        """Return the cursor as it is now."""
        return self._read()[0]

    def update(self, change: Callable[[Cursor], Cursor | None]) -> Cursor:
        """Change the cursor; return it as it is then.

        Args:
            change: Of a cursor as it is now; None: it is to stay so. Called again where somebody
                else was faster.
        """
        for attempt in range(_ATTEMPTS):
            before, version = self._read()
            after = change(before)
            if after is None:
                return before
            after = after.with_(token=uuid.uuid4().hex)
            content, began = after.model_dump_json(indent=1).encode(), self._clock()
            if version:
                written = self._store.replace(KEY, content, version=version)
                if written is not None:
                    self._version, self._written = written, began
                    return after
            elif self._store.create(KEY, content):
                return after
            self._sleep(random.uniform(0, min(0.02 * (attempt + 1), 0.5)))  # noqa: S311
        raise OutsideError(
            f"{KEY} in {self._store.uri} was changed by others each of {_ATTEMPTS} times",
            hint="does the store honour conditional writes? evertrain doctor PROJECT tries",
        )

    def _read(self) -> tuple[Cursor, str]:
        try:
            read = self._store.read(KEY)
        except ObjectMissing:
            return Cursor(), ""
        try:
            cursor = Cursor.model_validate_json(read.data)
        except ValidationError as error:
            raise ObjectDamaged(
                f"{KEY} in {self._store.uri} is no cursor ({error.error_count()} faults)",
                hint="it was damaged, or written by a newer version; without it the watchers begin "
                f"anew, and start no run twice: remove {KEY}",
            ) from error
        now = self._clock()
        if read.version != self._version:
            self._version, self._written = read.version, now - read.age
        return cursor.aged(now - self._written), read.version
