"""What a lease's object holds, what is seen of it, and how people are told."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

RESOLUTION = 1.0  # seconds to within which `ObjectStore.read` says an age
SHORTEST = 5.0  # seconds: below, little is left between two renewals
GAP = 1000  # more than were ever given between two promotions


class Holder(BaseModel):
    """Who has it, for people; `run` alone is what holders are told apart by.

    Attributes:
        run: Its id.
        who, where, how: A user, a host, what started it.
        place: Names the folder whose lock the run holds, on the machine where it runs; "": none.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    run: str
    who: str = ""
    where: str = ""
    how: str = ""
    place: str = ""


class LeaseRecord(BaseModel):
    """The object's content.

    Attributes:
        held: Whether somebody has it, for as long as it lives.
        holder: Who has it, or had it last.
        token: One more at each change of holder.
        since: When the holder took it, by the holder's own clock: for people.
        seconds: It lives so long after it was written.
        broken: Who took it away from its last holder; empty: that let go of it itself.
        fence: Why the holder, or the next one, has to make its number known to what takes its
            writes before it does anything else: one before may still believe. Empty: it need not.
        nonce: Makes no two contents equal, and tells a writer's own after a lost reply.
    """

    model_config = ConfigDict(extra="forbid")

    format: Literal["evertrain/lease/1"] = "evertrain/lease/1"
    held: bool
    holder: Holder
    token: int = Field(ge=1)
    since: datetime = Field(default_factory=lambda: datetime.now(UTC))
    seconds: float = Field(ge=SHORTEST)
    broken: str = ""
    fence: str = ""
    nonce: str = Field(default_factory=lambda: uuid.uuid4().hex)

    def renewed(self, seconds: float, **changes: Any) -> LeaseRecord:
        """Return a record to be written over this one."""
        always = {"seconds": max(seconds, SHORTEST), "nonce": uuid.uuid4().hex}
        return self.model_copy(update=always | changes)

    def written(self) -> bytes:
        """Return the object's content."""
        return self.model_dump_json(indent=1).encode()


@dataclass(frozen=True)
class Seen:
    """The lease as it was read.

    Attributes:
        age: Seconds since the last sign of life, by the store's clock.
    """

    record: LeaseRecord
    version: str
    age: float

    @property
    def expires_in(self) -> float:
        """Seconds until it may be taken, if its holder gives no sign of life."""
        return max(0.0, self.record.seconds - RESOLUTION - self.age)

    @property
    def free(self) -> bool:
        """Whether it may be taken."""
        return not self.record.held or self.expires_in == 0

    @property
    def words(self) -> str:
        """Who has it, and since when."""
        return f"{named(self.record.holder)} holds the lease since {instant(self.record.since)}"


@dataclass(frozen=True)
class Grant:
    """What its holder has.

    Attributes:
        until: By the clock of `infra.lease`: the holder must not act on it any more afterwards.
        fence: See `LeaseRecord`.
    """

    holder: Holder
    token: int
    until: float
    fence: str = ""


def named(holder: Holder) -> str:
    """Return a run and where it is from, for people."""
    who = "@".join(part for part in (holder.who, holder.where) if part)
    how = f" ({holder.how})" if holder.how else ""
    return f"run {holder.run}{f' of {who}' if who else ''}{how}"


def instant(when: datetime) -> str:
    """A time, for people."""
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def lost_words(holder: Holder, seen: Seen) -> str:
    """Why a run has no lease any more."""
    record, lost = seen.record, f"run {holder.run} has lost the lease"
    if record.broken:
        return f"{lost}: {record.broken} took it away"
    if record.holder.run == holder.run:
        return f"{lost}: it has let go of it"
    since = f"since {instant(record.since)}"
    if record.held:
        return f"{lost}: {named(record.holder)} holds it {since}"
    return f"{lost}: {named(record.holder)} had it {since}, and let go of it"


def of_new_holder(seen: Seen | None, holder: Holder, *, seconds: float, floor: int) -> LeaseRecord:
    if seen is None:
        token, fence = 1, ""
        if floor:  # the object was there once
            token, fence = floor + GAP, "the lease was deleted, and who had it is not known"
    else:
        token, fence = max(seen.record.token, floor) + 1, seen.record.fence
        if seen.record.held:
            fence = f"{named(seen.record.holder)} gave no sign of life for {seen.age:.0f} s"
    return LeaseRecord(
        held=True, holder=holder, token=token, seconds=max(seconds, SHORTEST), fence=fence
    )
