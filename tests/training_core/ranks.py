"""Start the ranks of one training as torchrun does, but from a process that has torch imported.

Importing it takes each rank some three seconds of processor time, and most of what they do here
less than one. What is promised of torchrun itself is tested with torchrun, in tests/components/
(test_launch.py, test_training_step.py) and tests/test_docs.py.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from functools import cache
from multiprocessing import forkserver
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch.distributed import TCPStore

HERE = Path(__file__).parent
PATIENCE = 100.0  # seconds; as long as a rank may take
GRACE = 5.0  # seconds; as long as the others may take once one has failed
WORKERS = ["ranks_worker", "ranks_techniques_worker", "checkpoint_ranks_worker", "update_worker"]


def run_ranks(count: int, scenario: Callable[[Path], dict[str, Any]], folder: Path) -> Any:
    """Run a scenario on `count` processes (gloo); return what rank 0 found."""
    start_ranks(count, _scenario, scenario, folder)
    return torch.load(folder / f"{scenario.__name__}.pt", weights_only=True)


def start_ranks(
    count: int, work: Callable[..., None], *arguments: Any, patience: float = PATIENCE
) -> None:
    """Call a module's function with these arguments in `count` processes, and wait for their end.

    Raises:
        AssertionError: Some failed, or were not done after `patience` seconds. It says what all of
            them wrote to stderr: tracebacks, and where those that hung did.
    """
    context = _forkserver()
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    with tempfile.TemporaryDirectory() as folder:
        words = [Path(folder, f"rank-{rank}") for rank in range(count)]
        ranks = [
            context.Process(
                target=_rank, args=(rank, count, store.port, words[rank], patience, work, arguments)
            )
            for rank in range(count)
        ]
        for process in ranks:
            process.start()
        try:
            _wait(ranks, patience + GRACE)
        finally:
            for process in ranks:
                process.kill()
                process.join()
        codes = [process.exitcode for process in ranks]
        said = [f"rank {i}:\n{file.read_text()[-4000:]}" for i, file in enumerate(words)]
    assert not any(codes), f"exit codes {codes}\n" + "\n".join(said)


def _wait(ranks: list[Any], seconds: float) -> None:
    """Until all have ended, or one has failed and those that wait for it had time to say so."""
    until = time.monotonic() + seconds
    left = {process.sentinel: process for process in ranks}
    while left and time.monotonic() < until:
        for sentinel in wait(list(left), until - time.monotonic()):
            process = left.pop(sentinel)
            process.join()
            if process.exitcode:
                until = min(until, time.monotonic() + GRACE)


@cache
def _forkserver() -> Any:
    """One for all tests of this process; Python 3.11 hands it neither sys.path nor a change of it.

    An optimiser's first step imports torch._dynamo, which takes each rank 0.8 s.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*WORKERS, "torch._dynamo"])
    paths = {"PYTHONPATH": f"{HERE.parents[1]}:{HERE}", "OMP_NUM_THREADS": "1"}
    with mock.patch.dict(os.environ, paths):
        forkserver.ensure_running()
    return context


def _rank(
    rank: int, count: int, port: int, words: Path, patience: float,
    work: Callable[..., None], arguments: tuple[Any, ...],
) -> None:  # fmt: skip
    """What one process does: take the environment that torchrun gives, and work."""
    with words.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    faulthandler.dump_traceback_later(patience, exit=True)
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",  # the store is the test's: no port can be taken
    }  # fmt: skip
    work(*arguments)


def _scenario(scenario: Callable[[Path], dict[str, Any]], folder: Path) -> None:
    found = scenario(folder)
    if torch.distributed.get_rank() == 0:
        torch.save(found, folder / f"{scenario.__name__}.pt")
    torch.distributed.destroy_process_group()
