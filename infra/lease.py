"""A lease: at most one holder at a time, each with a number of its own that only grows.

    lease = Lease(store)
    got = lease.take(Holder(run="one"), seconds=120)    # a Grant, or Seen: somebody else has it
    got = lease.renew(got, seconds=120)                 # LeaseLost if somebody else took it since
    lease.release(got)

One object holds it, and every change is a compare-and-swap on the version that was read. Nothing
reads a wall clock: how old the last sign of life is, the store says by its own clock, and how long
a holder may still act it measures itself, by a clock that no one can set and that goes on while the
machine sleeps. The two are so far apart that a holder has stopped believing before anybody else may
take the lease:

    0 s                                   seconds - 2       seconds - 1     seconds
    written ─────── its holder acts ──────────┤  nobody  ┤   may be taken  ┤  is free for certain

`read` says an age to within a second, so what it calls `seconds - 1` is between `seconds - 2` and
`seconds`.

The object is never deleted: its counter is what makes the numbers (fencing tokens) grow. What takes
writes from a holder refuses numbers lower than the highest that it has seen; that is what stops one
that was paused between its last look at the clock and its write. See M. Kleppmann, "How to do
distributed locking" (2016).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from pydantic import ValidationError

from infra.errors import LeaseLost, ObjectDamaged, ObjectMissing, OutsideError
from infra.lease_record import (
    GAP,
    RESOLUTION,
    SHORTEST,
    Grant,
    Holder,
    LeaseRecord,
    Seen,
    lost_words,
    of_new_holder,
)
from infra.store import ObjectStore

KEY = "lease.json"
_TICK = 0.05  # seconds, longer than a tick of any file system's clock
_ATTEMPTS = 100  # each lost one is a change by another process
_HINT = "start a new run: what this one has may be out of date"


def boot_seconds() -> float:
    """Seconds by a clock that nobody sets and that, where there is one, runs during sleep too."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Lease:
    """The lease on one object of a store; a process makes one for itself.

    Every method raises `OutsideError` when the store cannot be reached, and when the object is
    damaged: who holds it is not known then, so nobody gets it.

    Args:
        store: Where it is; its conditional writes have to work.
        key: Of the object.
        clock: Seconds; see `boot_seconds`.
    """

    def __init__(
        self, store: ObjectStore, key: str = KEY, *, clock: Callable[[], float] = boot_seconds
    ) -> None:
        self.store, self.key, self.clock = store, key, clock

    def look(self) -> Seen | None:
        """Return the lease as it is; None: nobody ever took it."""
        try:
            read = self.store.read(self.key)
        except ObjectMissing:
            return None
        try:
            record = LeaseRecord.model_validate_json(read.data)
        except ValidationError as error:
            raise ObjectDamaged(
                f"{self.key} in {self.store.uri} is no lease ({error.error_count()} faults)",
                hint="it was damaged, or written by a newer version; if no run is under way: "
                "evertrain lease PROJECT --break",
            ) from error
        return Seen(record, read.version, read.age)

    def take(self, holder: Holder, *, seconds: float, floor: int = 0) -> Grant | Seen:
        """Take it if it is free, or has been this holder's all along.

        Args:
            holder: Whose it will be.
            seconds: It lives so long without a renewal.
            floor: The new number is higher than this one, should the counter be lost.

        Returns:
            What the holder has; or the lease as it is, which somebody else holds.
        """

        def next_record(seen: Seen | None) -> LeaseRecord | None:
            if seen is not None and seen.record.held:
                if seen.record.holder.run == holder.run:
                    return seen.record.renewed(seconds)
                if not seen.free:
                    return None
            return of_new_holder(seen, holder, seconds=seconds, floor=floor)

        granted, seen = self._change(next_record)
        if granted is not None:
            return granted
        assert seen is not None  # there would be nothing that forbids to take it
        return seen

    def resume(self, holder: Holder, *, seconds: float) -> Grant | None:
        """Take up what a run's earlier step has; None: nobody ever took it.

        A run that let go of it at its end and is tried again gets it anew, with another number,
        unless somebody else had it meanwhile.

        Raises:
            LeaseLost: Somebody else has it, had it since, or took it away.
        """

        def next_record(seen: Seen | None) -> LeaseRecord | None:
            if seen is None:
                return None
            if seen.record.holder.run != holder.run or seen.record.broken:
                raise LeaseLost(lost_words(holder, seen), hint=_HINT)
            if seen.record.held:
                return seen.record.renewed(seconds)
            return of_new_holder(seen, holder, seconds=seconds, floor=0)

        return self._change(next_record)[0]

    def renew(self, grant: Grant, *, seconds: float, fenced: bool = False) -> Grant:
        """Give a sign of life; the lease lives `seconds` from now on.

        That its time was over does no harm if nobody took it.

        Args:
            grant: What the holder has.
            seconds: See there.
            fenced: What takes the holder's writes knows its number now.

        Raises:
            LeaseLost: It is somebody else's by now, or was taken away.
        """
        changes = {"fence": ""} if fenced else {}

        def next_record(seen: Seen | None) -> LeaseRecord:
            if seen is None:
                raise LeaseLost(
                    f"{self.key} in {self.store.uri} is gone, and this run's lease with it",
                    hint="to free a lease use evertrain lease PROJECT --break; " + _HINT,
                )
            if not seen.record.held or seen.record.token != grant.token:
                raise LeaseLost(lost_words(grant.holder, seen), hint=_HINT)
            return seen.record.renewed(seconds, **changes)

        granted, _ = self._change(next_record)
        assert granted is not None
        return granted

    def release(self, run: str, *, fence: str = "", broken: str = "") -> bool:
        """Let go of it, whatever its number; False: it is not this run's.

        Args:
            run: The holder's.
            fence: Why something of that run may still be writing; empty: nothing can.
            broken: Who takes it away from the run, which must not take it up again.
        """

        def next_record(seen: Seen | None) -> LeaseRecord | None:
            if seen is None or not seen.record.held or seen.record.holder.run != run:
                return None
            # one that is still due is left to the next holder
            freed = {"held": False, "fence": seen.record.fence or fence, "broken": broken}
            return seen.record.renewed(SHORTEST, **freed)

        return self._change(next_record)[0] is not None

    def reset(self, holder: Holder, *, floor: int) -> bool:
        """Write a free one over one that is damaged; False: it changed meanwhile.

        Its counter is lost, so it goes on far above `floor`.
        """
        version = self.store.read(self.key).version
        fence = "the lease was damaged, and who had it is not known"
        record = LeaseRecord(
            held=False, holder=holder, token=floor + GAP, seconds=SHORTEST, fence=fence
        )
        return self.store.replace(self.key, record.written(), version=version) is not None

    def _change(
        self, next_record: Callable[[Seen | None], LeaseRecord | None]
    ) -> tuple[Grant | None, Seen | None]:
        """Write what shall follow what is there; return the grant and what was seen.

        Args:
            next_record: From what is seen; None: nothing shall.
        """
        for attempt in range(_ATTEMPTS):
            seen = self.look()
            if seen is not None and not seen.record.held and seen.age < _TICK:
                # Two changes of a file within one tick of its clock could give back a version that
                # was there before, with a lower number in it.
                time.sleep(_TICK)
                seen = self.look()
            record = next_record(seen)
            if record is None:
                return None, seen
            granted = self._write(record, seen)
            if granted is not None:
                return granted, seen
            time.sleep(random.uniform(0, min(0.02 * (attempt + 1), 0.5)))  # noqa: S311
        raise OutsideError(
            f"{self.key} in {self.store.uri} was changed by others each of {_ATTEMPTS} times",
            hint="does the store honour conditional writes? evertrain doctor PROJECT tries",
        )

    def _write(self, record: LeaseRecord, seen: Seen | None) -> Grant | None:
        """Write a record over what was seen; None: that is there no more."""
        data, began = record.written(), self.clock()
        try:
            if seen is None:
                written = self.store.create(self.key, data)
            else:
                written = self.store.replace(self.key, data, version=seen.version) is not None
        except OutsideError:
            # The reply may be lost and not the write. One that arrives even later still does so
            # only over what was seen, and then a run that is gone has a lease that ends by time.
            now = self.look()
            if now is None or now.record.nonce != record.nonce:
                raise
            written = True
        until = began + record.seconds - 2 * RESOLUTION
        return Grant(record.holder, record.token, until, record.fence) if written else None
