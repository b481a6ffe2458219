"""One start of torchrun on this machine: its command, and what its ranks left.

    ended = start_torchrun(job, processes=4, folder=scratch, env=..., meeting=None)

`meeting` is where nodes meet, where there are several.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.train_distributed.failures import Failure, cause_of
from components.train_distributed.launch import run_to_end
from infra.errors import OutsideError


@dataclass(frozen=True)
class Meeting:
    """Where and how the torchruns of several nodes find each other (torch's c10d rendezvous).

    Attributes:
        name: Tells this training from others.
        host, port: Of node 0, which keeps the store that nodes speak through.
        node: Number of this node. Ranks are given in the order of addresses, not of these.
        address: Of this node, as the others reach it.
        nodes: Least and most that train together.
        patience: Seconds that nodes wait for one another.
        last_call: Seconds that the least, once they are there, wait for more.
        stop_grace: Seconds that ranks have to save in when they are asked to stop.
    """

    name: str
    host: str
    port: int
    node: int
    address: str
    nodes: tuple[int, int]
    patience: float
    last_call: float
    stop_grace: int

    def words(self) -> list[str]:
        """Return torchrun's options."""
        least, most = self.nodes
        host = f"[{self.host}]" if ":" in self.host else self.host
        conf = {
            "is_host": int(self.node == 0),
            "join_timeout": round(self.patience),
            "last_call_timeout": round(self.last_call) if least < most else 1,
        }
        return [
            f"--nnodes={least}:{most}", f"--rdzv-id={self.name}",
            "--rdzv-backend=c10d", f"--rdzv-endpoint={host}:{self.port}",
            f"--rdzv-conf={','.join(f'{key}={value}' for key, value in conf.items())}",
            f"--local-addr={self.address}", f"--shutdown-timeout={self.stop_grace}",
        ]  # fmt: skip


@dataclass(frozen=True)
class Ended:
    """How torchrun ended.

    Attributes:
        code: Its exit code; 1 for every end but the best.
        asked: Whether it was asked to stop from here.
        result: Of rank 0, if that was here and came to the end of the training.
        failures: Of the ranks here, in their order in time; a rank that was killed says none.
    """

    code: int
    asked: bool
    result: dict[str, Any] | None
    failures: list[Failure]

    def exception(self) -> BaseException:
        """Return what it failed with."""
        cause = cause_of(self.failures)
        if cause is not None:
            return cause.exception()
        if self.asked:  # before training had begun, or twice
            return KeyboardInterrupt()
        return OutsideError(
            f"torchrun ended with code {self.code} and no rank said why: one was killed (out of "
            "memory?)",
            hint="run the same command again: training goes on from its newest checkpoint",
        )


def start_torchrun(
    job: Mapping[str, Any],
    *,
    processes: int,
    folder: Path,
    env: Mapping[str, str],
    meeting: Meeting | None = None,
    over: Callable[[], bool] | None = None,
) -> Ended:
    """Run a job's ranks on this machine to their end.

    Args:
        job: Arguments of `job.train`, as plain data.
        processes: Ranks here.
        folder: For files that pass between this process and the ranks.
        env: Of the ranks.
        meeting: With the torchruns of other nodes.
        over: As in `run_to_end`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"train-{job['run_key']}-{os.getpid()}.json"
    done, failed = (file.with_name(file.name + suffix) for suffix in (".done", ".failed"))
    # The host's own name may not resolve without a network.
    where = ["--standalone", "--local-addr=127.0.0.1"] if meeting is None else meeting.words()
    command = [
        sys.executable, "-m", "components.train_distributed.agent", *where,
        "--no-python", f"--nproc-per-node={processes}",
        sys.executable, "-m", "components.train_distributed.worker", str(file),
    ]  # fmt: skip
    try:
        for stale in (done, failed):  # in a pod, processes have the same numbers at each start
            stale.unlink(missing_ok=True)
        file.write_text(json.dumps(job))
        code, asked = run_to_end(command, env, over=over)
        result = json.loads(done.read_text()) if done.exists() else None
        lines = failed.read_text().splitlines() if failed.exists() else []
        failures = [Failure.from_dict(json.loads(line)) for line in lines]
        return Ended(code, asked, result, failures)
    finally:
        for path in (file, done, failed):
            path.unlink(missing_ok=True)
