"""A step's part in the lease of its run: take it, or take it up; keep it alive; leave it.

One run of a project works at a time. `snapshot_data` takes the lease for the run; every later step
takes it up when it starts, and stops there if the run has lost it. While a step works, a thread
gives a sign of life every third of `lease.seconds`. When it ends, the lease is left to live for
`lease.between`, for the next step's pod has to start. `report_run` lets go of it.

A step that has lost the lease is asked to stop as by SIGTERM, and whatever it would still write to
the object store is refused (`ensure`). The process that took no notice, because it was paused, is
in no other position: its first write afterwards finds that its time is over, and asks the store.
"""

from __future__ import annotations

import getpass
import os
import signal
import socket
import sys
import threading
import traceback
from dataclasses import replace

from components.common.project import Project
from components.common.trigger_settings import LeaseSettings
from infra.errors import LeaseLost, OutsideError
from infra.guarded import GuardedStore
from infra.lease import Lease
from infra.lease_record import Grant, Holder, Seen
from infra.store import ObjectStore

PLACE = "EVERTRAIN_PLACE"
"""Names the folder whose lock the command holds that started this step; see `Holder.place`."""
STARTED_BY = "EVERTRAIN_STARTED_BY"
"""Words for what started the run, if whoever did wants them to be said."""
_TAKES_NONE = ("snapshot_data", "report_run")  # the one takes it itself, the other lets go of it


class Holding:
    """What one process has of its run's lease; nothing, until it takes it or takes it up.

    Args:
        store: The project's, unguarded.
        run: The run's id.
        settings: How long the lease lives.
    """

    def __init__(self, store: ObjectStore, *, run: str, settings: LeaseSettings) -> None:
        self._lease = Lease(store)
        self._holder = this_holder(run)
        self._settings = settings
        self._grant: Grant | None = None
        self._lost: LeaseLost | None = None
        self._one_at_a_time = threading.Lock()
        self._quiet = threading.Event()

    @classmethod
    def joined(
        cls, store: ObjectStore, *, run: str, settings: LeaseSettings, token: int
    ) -> Holding:
        """What a process has that a step has started, which keeps the lease alive for it.

        Args:
            store, run, settings: As above.
            token: The step's; 0: it has no lease.
        """
        holding = cls(store, run=run, settings=settings)
        if token:
            holding._grant = Grant(holding._holder, token, until=float("-inf"))
        return holding

    @property
    def token(self) -> int:
        """The run's fencing token; 0: there is no lease, for the run is older than leases."""
        return self._grant.token if self._grant else 0

    @property
    def fence(self) -> str:
        """Why this run's number has to be made known before it works; see `LeaseRecord.fence`."""
        return self._grant.fence if self._grant else ""

    def take(self, *, floor: int) -> Seen | None:
        """Take the lease for the run, and keep it alive; or return it as somebody else has it.

        Args:
            floor: The highest token that is known.
        """
        got = self._lease.take(self._holder, seconds=self._settings.seconds, floor=floor)
        if isinstance(got, Seen):
            return got
        self._begin(got)
        return None

    def take_up(self, step: str) -> None:
        """Take up the run's lease at the start of one of its later steps, and keep it alive.

        Raises:
            LeaseLost: The run has lost it.
        """
        if step not in _TAKES_NONE:
            got = self._lease.resume(self._holder, seconds=self._settings.seconds)
            if got is not None:
                self._begin(got)

    def confirm(self) -> None:
        """Ask the store whether the run has the lease now, and let it live.

        Raises:
            LeaseLost: It has not.
            OutsideError: The store cannot be reached.
        """
        if self._grant is not None:
            self._renew()

    def ensure(self) -> None:
        """Return if the run has the lease; that costs nothing where a sign of life is fresh.

        Raises:
            LeaseLost: It has not.
            OutsideError: The store cannot be reached.
        """
        if self._lost is not None:
            raise self._lost
        if self._grant is not None and self._lease.clock() >= self._grant.until:
            self._renew()

    def fenced(self) -> None:
        """Note that the run's number is known to what takes its writes."""
        self._renew(fenced=True)

    def reason(self, error: BaseException) -> BaseException:
        """Why a step ends: a lost lease is behind whatever it ends with."""
        return self._lost or error

    def hush(self) -> None:
        """Stop giving signs of life, and interrupt nobody any more."""
        try:
            self._quiet.set()
            with self._one_at_a_time:  # a sign of life that is under way must not come later
                pass
        except KeyboardInterrupt:
            if self._lost is None:  # else it is `_interrupt`, of a step that is at its end
                raise

    def rest(self) -> None:
        """Leave the lease to the run's next step; the next one says it if that cannot be."""
        self.hush()
        if self._grant is None or self._lost is not None:
            return
        try:
            self._lease.renew(self._grant, seconds=self._settings.between)
        except OutsideError as error:
            _say(f"left as it is at the end of this step: {error.what}")
        self._grant = replace(self._grant, until=float("-inf"))

    def let_go(self, *, fence: str) -> None:
        """Let go of the run's lease, if it has it; where that cannot be, it ends by time.

        Args:
            fence: Why something of the run may still be writing; empty: nothing can.
        """
        self.hush()
        try:
            self._lease.release(self._holder.run, fence=fence)
        except OutsideError as error:
            _say(f"it could not be let go of, and will end by itself: {error.what}")

    def _begin(self, grant: Grant) -> None:
        self._grant = grant
        threading.Thread(target=self._keep, name="lease", daemon=True).start()

    def _keep(self) -> None:
        """Give signs of life until none is wanted any more, or the lease is lost."""
        usual = self._settings.seconds / 3
        pause, failed = usual, False
        while not self._quiet.wait(pause):
            try:
                with self._one_at_a_time:
                    if not self._quiet.is_set():
                        self._renew_alone()
                pause, failed = usual, False
            except LeaseLost as lost:
                self._interrupt(lost)
                return
            except OutsideError as error:
                if not failed:
                    _say(f"no sign of life could be given, and it is tried again: {error.what}")
                pause, failed = usual / 3, True
            except Exception:  # noqa: BLE001 (without this thread the run would lose the lease)
                traceback.print_exc()
                pause = usual / 3

    def _renew(self, *, fenced: bool = False) -> None:
        with self._one_at_a_time:
            self._renew_alone(fenced=fenced)

    def _renew_alone(self, *, fenced: bool = False) -> None:
        assert self._grant is not None
        seconds = self._settings.seconds
        try:
            self._grant = self._lease.renew(self._grant, seconds=seconds, fenced=fenced)
        except LeaseLost as lost:
            self._lost = lost
            raise

    def _interrupt(self, lost: LeaseLost) -> None:
        """Ask the step to stop, as Kubernetes would."""
        _say(f"{lost.what}; this step stops")
        with self._one_at_a_time:
            main = threading.main_thread().ident
            if main is not None and not self._quiet.is_set():
                signal.pthread_kill(main, signal.SIGTERM)


def guarded(store: ObjectStore, project: Project, *, token: int) -> ObjectStore:
    """Return the project's store as a process may use it that a step has started.

    Args:
        store: It.
        project: Opened as in the step.
        token: Of the step's lease; 0: it has none, and nothing is guarded.
    """
    if not token:
        return store
    run, lease = os.environ["EVERTRAIN_RUN_ID"], project.settings.lease
    holding = Holding.joined(store, run=run, settings=lease, token=token)
    return GuardedStore(store, holding.ensure)


def this_holder(run: str) -> Holder:
    """Who this process works for."""
    try:
        who = getpass.getuser()
    except (KeyError, OSError):  # a container's user need not have a name
        who = ""
    how = os.environ.get(STARTED_BY, "")
    if not how and "KUBERNETES_SERVICE_HOST" in os.environ:
        how = "in Kubernetes"
    return Holder(
        run=run, who=who, where=socket.gethostname(), how=how, place=os.environ.get(PLACE, "")
    )


def _say(words: str) -> None:
    print(f"lease: {words}", file=sys.stderr, flush=True)
