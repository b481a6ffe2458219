"""One run at a time: a home folder's lock, what a killed run left, and the run that is skipped.

Two commands on one machine are kept apart by a lock on a file of the home folder, which the system
lets go of whatever happens: it keeps the folder's files in order. Runs in different places are kept
apart by the lease in the object store.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from components.common.layout import digest_of, home, record_key
from components.common.project import Project
from components.common.records import StepRecord
from components.common.run_record import RunRecord
from components.report_run.alerting import alert_each, alert_once
from components.report_run.step import write_report
from infra.errors import ObjectMissing, OutsideError
from infra.lease import Lease
from infra.store import ObjectStore

_POLL = 1.0  # seconds between two tries of a lock that is waited for


class HomeBusy(OutsideError):  # noqa: N818
    """Another command has the home folder's lock."""


@contextlib.contextmanager
def only_run(
    folder: Path, *, patience: float = 0.0, on_wait: Callable[[str], None] = lambda words: None
) -> Iterator[str]:
    """Hold the lock of a home folder; the system lets go of it whatever happens.

    Args:
        folder: It; made if missing.
        patience: Seconds to wait for it.
        on_wait: Told, once, that another one has it.

    Yields:
        A name of the folder on this machine since it was started, which no copy of the folder has.

    Raises:
        HomeBusy: Another run holds it, and patience is at its end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "run.lock").open("a+") as file:
        until, told = time.monotonic() + patience, False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                file.seek(0)
                words = (
                    "another run of this project is under way on this machine "
                    f"({file.read().strip() or 'no details'})"
                )
                left = until - time.monotonic()
                if left <= 0:
                    raise HomeBusy(
                        words, hint="wait for it to end; its log is in " + str(folder / "logs")
                    ) from error
                if not told:
                    on_wait(words)
                    told = True
                time.sleep(min(_POLL, left))
        file.truncate(0)
        file.write(f"process {os.getpid()}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC")
        file.flush()
        status = os.fstat(file.fileno())
        facts = [_boot(), socket.gethostname(), os.path.realpath(folder)]
        yield digest_of([*facts, status.st_dev, status.st_ino])[:16]


def free_dead(store: ObjectStore, place: str) -> None:
    """Let go of the lease of a run that was killed in this very folder, without waiting for it.

    Whoever holds the folder's lock knows that nobody else runs there.

    Args:
        store: The project's.
        place: What `only_run` yields.
    """
    lease = Lease(store)
    seen = lease.look()
    if seen is not None and seen.record.held and seen.record.holder.place == place:
        run = seen.record.holder.run
        lease.release(run, fence=f"run {run} was killed", broken="the next run in its folder")


def close_interrupted_runs(project: Project, store: ObjectStore) -> None:
    """Write the record of every earlier run that was killed before it could, and tell of it.

    Runs of other places that give signs of life are left alone. However many there are to be told
    of, that takes no longer than of one.
    """
    seen: dict[str, set[str]] = {}
    for info in store.list("runs/"):
        _, run, name = info.key.split("/", 2)
        seen.setdefault(run, set()).add(name)
    lease = Lease(store).look()
    holder = lease.record.holder.run if lease is not None and not lease.free else ""
    killed = [
        run
        for run, names in seen.items()
        if "run.json" not in names and run != holder and not _lives(project, store, run, names)
    ]
    alert_each(project, store, [write_report(project, store, run=run) for run in killed])


def skipped_run(project: Project, store: ObjectStore, busy: HomeBusy) -> RunRecord:
    """Leave the record of a run that did nothing, for another one is under way in this folder."""
    with contextlib.suppress(OutsideError):
        seen = Lease(store).look()
        if seen is not None and not seen.free:
            busy = HomeBusy(seen.words)
    run = new_run_id()
    record = StepRecord(
        step="snapshot_data", run=run, run_key="", status="skipped", reason=busy.what
    )
    store.put(record_key(run, record.step), record.model_dump_json(indent=1).encode())
    ended = write_report(project, store, run=run)
    alert_once(project, store, ended)
    return ended


def new_run_id() -> str:
    """An id that sorts by time."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def _lives(project: Project, store: ObjectStore, run: str, names: set[str]) -> bool:
    """Whether a run that does not have the lease may be under way somewhere else."""
    if (home(project) / "logs" / f"{run}.log").exists():
        return False  # it was started here, and whoever asks has the lock
    for name in names:  # it may be about to take the lease, wait for it, or write its report
        with contextlib.suppress(ObjectMissing, ValueError):
            read = store.read(f"runs/{run}/{name}")
            young = read.age < project.settings.lease.seconds
            if young and StepRecord.model_validate_json(read.data).status == "running":
                return True
    return False


def _boot() -> str:
    """Which start of which machine this is; empty where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
