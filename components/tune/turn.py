"""One search of a study at a time: a lock on this machine, and a lease in the object store.

    with my_turn(store, folder=home / "tune" / name, name=name) as mine:
        open_study(GuardedStore(store, mine.ensure), ...)

A search that was killed here is taken over at once, for its lock is free; one that was killed
elsewhere when its lease is.
"""

from __future__ import annotations

import fcntl
import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from components.common.layout import digest_of
from infra.errors import LeaseLost, OutsideError
from infra.lease import Lease
from infra.lease_record import Grant, Holder, Seen
from infra.store import ObjectStore

SECONDS = (
    60.0  # a search that died is free after so long; a sign of life comes three times as often
)
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Turn:
    """What this process has of a study; it keeps the lease alive from a thread of its own."""

    def __init__(self, lease: Lease, grant: Grant) -> None:
        self._lease, self._grant = lease, grant
        self._lost: LeaseLost | None = None
        self._over = threading.Event()
        self._alone = threading.Lock()
        threading.Thread(target=self._keep, name="tune lease", daemon=True).start()

    def ensure(self) -> None:
        """Return if the study is this process's; that costs nothing while a sign of life is fresh.

        Raises:
            LeaseLost: It is another one's by now.
            OutsideError: The store cannot be reached.
        """
        if self._lost is not None:
            raise self._lost
        if self._lease.clock() >= self._grant.until:
            self._renew()

    def let_go(self) -> None:
        """Give the study back; where that cannot be said, it ends by time."""
        self._over.set()
        with self._alone, suppress(OutsideError):
            self._lease.release(self._grant.holder.run)

    def _keep(self) -> None:
        while not self._over.wait(SECONDS / 3):
            try:
                self._renew()
            except LeaseLost:
                return
            except OutsideError:
                continue  # `ensure` says so once the time is over

    def _renew(self) -> None:
        with self._alone:
            if self._over.is_set():
                return
            try:
                self._grant = self._lease.renew(self._grant, seconds=SECONDS)
            except LeaseLost as lost:
                self._lost = lost
                raise


@contextmanager
def my_turn(store: ObjectStore, *, folder: Path, name: str) -> Iterator[Turn]:
    """Hold a study until the block ends.

    Args:
        store: The project's.
        folder: Of the search on this machine; made if missing.
        name: Of the study.

    Raises:
        OutsideError: Another search of it is under way.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutsideError(
                f"this search is under way on this machine already ({folder})",
                hint="wait for it to end; it can be looked at with the same command afterwards",
            ) from error
        lease = Lease(store, f"tune/{name}/lease.json")
        turn = Turn(lease, _taken(lease, _place(folder)))
        try:
            yield turn
        finally:
            turn.let_go()


def _taken(lease: Lease, place: str) -> Grant:
    run = f"process {os.getpid()} of {socket.gethostname()} ({uuid.uuid4().hex[:8]})"
    holder = Holder(run=run, where=socket.gethostname(), place=place)
    seen = lease.look()
    if seen is not None and seen.record.held and seen.record.holder.place == place:
        lease.release(seen.record.holder.run, broken="the next search in its folder")
    got = lease.take(holder, seconds=SECONDS)
    if isinstance(got, Seen):
        raise OutsideError(
            f"this search is under way elsewhere: {got.record.holder.run}, since "
            f"{got.record.since:%Y-%m-%d %H:%M:%S} UTC",
            hint=f"wait for it to end; if it was killed, try again in {SECONDS:.0f} seconds",
        )
    return got


def _place(folder: Path) -> str:
    """Name a folder on this machine since it was started."""
    boot = _BOOT.read_text() if _BOOT.exists() else ""
    return digest_of([boot, socket.gethostname(), str(folder.resolve())])[:16]
