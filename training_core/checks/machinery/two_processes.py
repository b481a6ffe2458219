"""Two processes of one training on this machine, which a deadline ends."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

COUNT = 2
_GRACE = 3.0  # seconds that the other may take once one has failed


class TooSlow(Exception):  # noqa: N818 (nothing is wrong with the training)
    """The deadline has passed; the processes were killed."""


def in_two_processes(
    work: Callable[..., Any], *arguments: Any, seconds: float
) -> tuple[list[Any], list[str]]:
    """Call a module's function in two processes that are a gloo group.

    On a machine without a GPU they are forked, so that nothing is pickled and what was changed in
    this process is changed in them; CUDA does not survive a fork.

    Args:
        work: Its result is something that `torch.save` takes.
        arguments: Pickled where processes are spawned.
        seconds: The deadline.

    Returns:
        Results of those that ended well, by rank; and the last line that each of the others wrote.

    Raises:
        TooSlow: The deadline has passed.
    """
    context: Any = get_context("spawn" if torch.cuda.is_available() else "fork")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        processes = [
            context.Process(target=_rank, args=(rank, folder, work, arguments), daemon=True)
            for rank in range(COUNT)
        ]
        try:
            for process in processes:
                process.start()
            if not _ended(processes, seconds):
                raise TooSlow
        finally:
            for process in processes:
                if process.pid is not None:
                    process.kill()
                    process.join()
        results, words = [], []
        for rank, process in enumerate(processes):
            if process.exitcode == 0:
                results.append(torch.load(folder / f"{rank}.pt", weights_only=True))
            else:
                said = (folder / f"{rank}.txt").read_text().strip().splitlines()
                words.append(f"rank {rank}: {said[-1] if said else f'exit {process.exitcode}'}")
        return results, words


def _ended(processes: list[Any], seconds: float) -> bool:
    """Wait until all have ended, or one has failed and the other had time to say so."""
    until = time.monotonic() + seconds
    left = {process.sentinel: process for process in processes}
    failed = False
    while left and time.monotonic() < until:
        for sentinel in wait(list(left), until - time.monotonic()):
            process = left.pop(sentinel)
            process.join()
            if process.exitcode and not failed:
                failed, until = True, min(until, time.monotonic() + _GRACE)
    return failed or not left


def _rank(rank: int, folder: Path, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """What one process does."""
    torch.set_num_threads(1)  # at once: a pool of threads does not survive a fork
    with (folder / f"{rank}.txt").open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    with contextlib.suppress(OSError, StopIteration):  # gloo would ask for the host's own name
        names = [name for _, name in socket.if_nameindex()]
        os.environ["GLOO_SOCKET_IFNAME"] = next(name for name in names if name.startswith("lo"))
    meeting = f"file://{folder / 'meeting'}"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=COUNT)
    torch.save(work(*arguments), folder / f"{rank}.pt")
    dist.destroy_process_group()
