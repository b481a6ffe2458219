"""Run torchrun to its end, and stop it in good order.

A terminal's Ctrl-C reaches every process of its foreground group, a pod's SIGTERM or a `kill` one
alone. torchrun must get one signal: a second one would reach the ranks too, which then end without
saving. So it runs in a session of its own, and the first that comes here is passed on as SIGTERM.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from components.common.watchdog import VARIABLE, this_process


def run_to_end(command: Sequence[str], env: Mapping[str, str]) -> tuple[int, bool]:
    """Run torchrun; return its exit code, and whether it was asked to stop.

    SIGTERM or Ctrl-C asks, a second one kills torchrun and its ranks. Should this process be killed
    itself, ranks that watch their parent (`watchdog.end_with_parent`) end too.
    """
    process: subprocess.Popen[bytes] | None = None
    asked = False

    def pass_on(signum: int, frame: FrameType | None) -> None:
        nonlocal asked
        if process is not None:
            if asked:
                _kill(process)
            else:
                process.terminate()
        asked = True

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        process = subprocess.Popen(
            command, env={**env, VARIABLE: this_process()}, start_new_session=True
        )
        if asked:  # while it was being started: it cannot have ranks yet
            process.terminate()
        return process.wait(), asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill torchrun and its ranks, each of which leads a process group of its own.

    Without /proc ranks end when they find that this process is gone.
    """
    with contextlib.suppress(OSError):
        for rank in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(int(rank), signal.SIGKILL)
    process.kill()
