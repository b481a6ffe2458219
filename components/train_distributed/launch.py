"""Run torchrun to its end, and stop it in good order.

A terminal's Ctrl-C reaches every process of its foreground group, a pod's SIGTERM or a `kill` one
alone. torchrun must get one signal: a second one would reach the ranks too, which then end without
saving. So it runs in a session of its own, and the first that comes here is passed on as SIGTERM.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

from components.common.watchdog import VARIABLE, this_process


def run_to_end(
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    over: Callable[[], bool] | None = None,
    every: float = 2.0,
) -> tuple[int, bool]:
    """Run torchrun; return its exit code, and whether it was asked to stop.

    SIGTERM or Ctrl-C asks, a second one kills torchrun and its ranks. Should this process be killed
    itself, ranks that watch their parent (`watchdog.end_with_parent`) end too.

    Args:
        command: torchrun's.
        env: Its environment.
        over: Looked at now and then: once it says so torchrun is ended, though nobody asked.
        every: Seconds between two looks.
    """
    process: subprocess.Popen[bytes] | None = None
    asked = ended = False

    def end() -> None:
        """End torchrun in good order; a second signal would end ranks without saving."""
        nonlocal ended
        if process is not None and not ended:
            process.terminate()
            ended = True

    def pass_on(signum: int, frame: FrameType | None) -> None:
        nonlocal asked
        if process is not None and asked:
            _kill(process)
        end()
        asked = True

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        process = subprocess.Popen(
            command, env={**env, VARIABLE: this_process()}, start_new_session=True
        )
        if asked:  # while it was being started: it cannot have ranks yet
            end()
        while over is not None:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(every), asked
            if over():
                end()
                over = None
        return process.wait(), asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill torchrun and its ranks, each of which leads a process group of its own.

    Without /proc ranks end when they find that this process is gone.
    """
    with suppress(OSError):
        for rank in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            with suppress(ProcessLookupError):
                os.killpg(int(rank), signal.SIGKILL)
    process.kill()
