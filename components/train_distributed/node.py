"""One node of several that train together: what each pod of a TrainJob runs.

    python -m components.train_distributed.node STORE JOB [--node 1 --host 10.0.0.1]

STORE is the object store that all nodes reach, JOB the prefix of the attempt in it. In a pod,
Kubeflow Trainer says which node this is and where node 0 is (PET_NODE_RANK, PET_MASTER_ADDR).

It runs torchrun again and again until the training has a result or has failed for good: a rank, a
torchrun or a whole node that is lost makes the others fail; they meet anew and go on from the
newest checkpoint. Exit codes are those of a step.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType

from components.common.layout import checkpoint_prefix, home
from components.common.project import open_project
from components.common.records import threads_of
from components.common.watchdog import end_with_parent
from components.train_distributed.failures import Failure, cause_of, exit_code
from components.train_distributed.network import Way, answers, own_name, way_to
from components.train_distributed.results import has_result
from components.train_distributed.shared_job import JobOfNodes, SharedJob
from components.train_distributed.stop import NOTICE
from components.train_distributed.torchrun import Ended, Meeting, start_torchrun
from infra.errors import OutsideError
from infra.store import open_store
from training_core.errors import EvertrainError

_LOOK_SECONDS = 5.0  # between two looks into the store
_WRAP_UP_SECONDS = 120.0  # rank 0 waits for MLflow for up to 60 before it keeps the result
_LINGER_SECONDS = 10.0  # that torchrun may take to end by itself once there is a result
_LONGEST_PAUSE = 30.0
_MOMENT = 1.0
_INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME")


class Node:
    """This machine's part in an attempt.

    Args:
        shared: The attempt.
        number: Of this node, from 0.
        host: Of node 0, as a name or address.
        port: There; 0: as the attempt says.
        start: Starts torchrun, and waits for its end.
    """

    def __init__(
        self,
        shared: SharedJob,
        *,
        number: int,
        host: str,
        port: int = 0,
        start: Callable[..., Ended] = start_torchrun,
    ) -> None:
        self.shared, self.number, self.host = shared, number, host
        self.job: JobOfNodes = shared.read()
        self.port, self._start = port or self.job.port, start
        self.asked = False
        self._looked = 0.0  # when the store was last looked at
        self._alone_since = self._done_since = 0.0
        self._fruitless = 0
        self._newest = self._newest_step()

    def ask(self, signum: int, frame: FrameType | None) -> None:
        """Be asked to stop (while torchrun runs, it is torchrun that is asked)."""
        self.asked = True

    def run(self) -> int:
        """Take part until the training is over; return the exit code."""
        while True:
            try:
                code = self._round()
            except OutsideError as error:
                code = self._again(error)
            except EvertrainError as error:
                code = self._give_up(Failure.of(error))
            if code is not None:
                return code

    # ---- one round -----------------------------------------------------------------------------

    def _round(self) -> int | None:
        """Train with the others until something ends it; return the exit code if all is over."""
        code = self._verdict()
        if code is not None:
            return code
        way = None if self._notice() else self._way()
        if way is None:
            return self._wait_for_way()
        began, self._alone_since, self._done_since = time.monotonic(), 0.0, 0.0
        ended = self._torchrun(way)
        self.asked = self.asked or ended.asked
        code = self._verdict()
        if code is None and ended.code == 0:  # rank 0 is elsewhere, and not done yet
            self._pause(_WRAP_UP_SECONDS)
            return None
        cause = cause_of(ended.failures)
        if code is not None:
            return code
        if cause is not None and cause.final:
            return self._give_up(cause)
        if cause is None and time.monotonic() - began >= self.job.meeting:
            return self._give_up(Failure.of(self._nobody_came()))
        return self._again(ended.exception())

    def _verdict(self) -> int | None:
        """Return the exit code if the training is over, or this node was asked to stop."""
        self._looked = time.monotonic()
        if has_result(self.shared.store, self.job.run_key):
            return 0
        failure = self.shared.failure()
        if failure is not None:
            return exit_code(failure.exception())
        if self.shared.unfollowed() > self.job.orphaned:
            self._say(f"no step has followed this training for {self.job.orphaned:g} s: it ends")
            return 130
        return 130 if self.asked else None

    def _notice(self) -> bool:
        """Whether this machine is about to go away: it does not begin anything then."""
        notice = os.environ.get(NOTICE, "")
        return bool(notice) and Path(notice).exists()

    def _way(self) -> Way | None:
        """Return the way to node 0; None: it cannot be met yet."""
        with suppress(OSError):  # its name is not known yet
            way = way_to(self.host, self.port)
            if self.number == 0 or answers(self.host, self.port):
                return way
        return None

    def _wait_for_way(self) -> int | None:
        """Wait a moment for node 0, or, where this machine is about to go away, for that."""
        now = time.monotonic()
        self._alone_since = self._alone_since or now
        if now - self._alone_since > self.job.meeting and not self._notice():
            return self._give_up(Failure.of(self._nobody_came()))
        self._pause(_MOMENT)
        return None

    def _torchrun(self, way: Way) -> Ended:
        training = self.job.training
        opened = open_project(training["project"], overrides=training["overrides"])
        interface = self.job.interface or way.interface
        chosen = dict.fromkeys(_INTERFACES, interface) if interface else {}
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PET_")}
        # torch's C++ prints pages of frames when a peer is gone, which is said here in a line.
        chosen["TORCH_CPP_LOG_LEVEL"] = "ERROR"
        # A node that joins agents which have met before would wait for an address that they told
        # in an earlier round alone, a minute and in vain (torch 2.13; see pytorch issue 135712).
        chosen["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
        more = {
            "OMP_NUM_THREADS": str(threads_of(opened.settings.training)),
            "EVERTRAIN_RUN_ID": self.job.run,
        }
        meeting = Meeting(
            name=self.job.identity,
            host=self.host,
            port=self.port,
            node=self.number,
            address=own_name(self.host, way.address) or way.address,
            nodes=(self.job.least, self.job.nodes),
            patience=self.job.meeting,
            last_call=self.job.last_call,
            stop_grace=self.job.stop_grace,
        )
        self._say(f"meets the others at {self.host}:{self.port}, by {way.address} {interface}")
        return self._start(
            training,
            processes=self.job.processes,
            folder=home(opened) / "scratch",
            env=chosen | kept | more,
            meeting=meeting,
            over=self._is_over,
        )

    def _is_over(self) -> bool:
        """Whether torchrun has nothing to do any more; a look into the store now and then.

        A store that is away is no reason to end: ranks find out when they need it.
        """
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS:
            return False
        try:
            code = self._verdict()
        except OutsideError as error:
            self._say(f"cannot look after the training: {error.what}")
            return False
        if code == 0:  # ranks are ending, or wait for others that have ended
            self._done_since = self._done_since or now
            return now - self._done_since >= _LINGER_SECONDS
        return code is not None

    # ---- what follows --------------------------------------------------------------------------

    def _again(self, error: BaseException) -> int | None:
        """Go on from the newest checkpoint, unless that was tried often enough."""
        self._fruitless += 1
        with suppress(OutsideError):
            newest = self._newest_step()
            if newest > self._newest:
                self._newest, self._fruitless = newest, 0
        if self._fruitless > self.job.restarts:
            return self._give_up(Failure.of(error))
        words = str(error).partition("\n")[0] or "asked to stop"
        self._say(f"goes on from step {max(self._newest, 0)}: {words}")
        self._pause(min(2.0**self._fruitless, _LONGEST_PAUSE))
        return None

    def _give_up(self, failure: Failure) -> int:
        """Say for all nodes why it is over."""
        failure = replace(failure, node=str(self.number))
        with suppress(OutsideError):
            self.shared.fail(failure)
        error = failure.exception()
        self._say(str(error) or "interrupted")
        return exit_code(error)

    def _nobody_came(self) -> OutsideError:
        return OutsideError(
            f"node {self.number} waited {self.job.meeting:g} s at {self.host}:{self.port}, and "
            f"fewer than {self.job.least} nodes came together",
            hint="look for pods that wait for a machine or an image; let the pods of a TrainJob "
            "reach each other on all ports; a runtime with a podGroupPolicy starts all or none",
        )

    def _pause(self, seconds: float) -> None:
        """Wait, unless all is over before, or this node is asked to stop."""
        until = time.monotonic() + seconds
        while not self.asked and time.monotonic() < until:
            time.sleep(0.2)
            if time.monotonic() - self._looked >= _LOOK_SECONDS:
                with suppress(OutsideError):
                    if self._verdict() is not None:
                        return

    def _newest_step(self) -> int:
        prefix = f"{checkpoint_prefix(self.job.run_key)}/"
        names = (info.key.removeprefix(prefix) for info in self.shared.store.list(prefix))
        steps = (name.partition("/")[0] for name in names if name.endswith("/manifest.json"))
        return max(map(int, steps), default=-1)

    def _say(self, words: str) -> None:
        print(f"node {self.number}: {words}", file=sys.stderr, flush=True)


def main(words: Sequence[str] | None = None) -> int:
    """Take part as the command line and the environment say; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m components.train_distributed.node",
        description="Train as one node of several.",
    )
    parser.add_argument("store", help="object store that all nodes reach")
    parser.add_argument("job", help="prefix of the attempt in it: jobs/RUN-KEY/NUMBER")
    parser.add_argument("--node", type=int, help="number of this node, from 0")
    parser.add_argument("--host", help="address of node 0, as all nodes reach it")
    given = parser.parse_args(words)
    number = given.node if given.node is not None else os.environ.get("PET_NODE_RANK", "")
    host = given.host or os.environ.get("PET_MASTER_ADDR", "")
    if number == "" or not host:
        parser.error("--node and --host are needed where Kubeflow Trainer does not say them")
    end_with_parent()
    port = 0 if given.host else int(os.environ.get("PET_MASTER_PORT", 0))
    try:
        shared = SharedJob(open_store(given.store), given.job)
        node = Node(shared, number=int(number), host=host, port=port)
        for asking in (signal.SIGTERM, signal.SIGINT):
            signal.signal(asking, node.ask)
        return node.run()
    except OutsideError as error:
        print(f"node {number}: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
