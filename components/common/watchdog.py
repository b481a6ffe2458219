"""A step does not outlive the command that started it.

`kill -9` of `evertrain run` leaves its children running; the same command started again would then
race with them. Every local step watches the process named by EVERTRAIN_PARENT and ends at once
when it is gone. On a cluster the variable is not set and nothing is watched.

In a container there is no such process to see; there the variable is `stdin`: its other end is held
by the command, and what ends it, ends the step.
"""

from __future__ import annotations

import os
import signal
import threading
import time

VARIABLE = "EVERTRAIN_PARENT"
STDIN = "stdin"
"""The variable's value in a container."""
_SECONDS = 0.2


def this_process() -> str:
    """Name this process so that another one with the same number is not taken for it."""
    return f"{os.getpid()}:{_started(os.getpid())}"


def end_with_parent() -> None:
    """Start watching, once, if there is something to watch."""
    _end_with(os.environ.get(VARIABLE, ""))


def end_with_launcher() -> None:
    """Watch the process that started this one as well: a rank does not outlive its torchrun."""
    launcher = os.getppid()
    _end_with(f"{launcher}:{_started(launcher)}")


def is_alive(named: str) -> bool:
    """Whether the process named by `this_process()` still runs."""
    pid, _, started = named.partition(":")
    return pid.isdigit() and _started(int(pid)) == started


def _end_with(watched: str) -> None:
    name = f"{VARIABLE} {watched}"
    if watched and not any(thread.name == name for thread in threading.enumerate()):
        threading.Thread(target=_watch, args=(watched,), name=name, daemon=True).start()


def _watch(watched: str) -> None:
    if watched == STDIN:
        _read_stdin()
    else:
        while is_alive(watched):
            time.sleep(_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)
    os._exit(137)  # the first process of a container cannot kill itself


def _read_stdin() -> None:
    """Return at its end; a line `stop` stands for SIGTERM, which a container's shell keeps."""
    while said := os.read(0, 64):  # not sys.stdin: its lock would be held when Python ends
        if b"stop" in said:
            os.kill(os.getpid(), signal.SIGTERM)


def _started(pid: int) -> str:
    """When a process started, in clock ticks since boot; empty if there is none or it has ended.

    Systems without /proc have no such figure: there only the number is compared.
    """
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[19]
    except FileNotFoundError:
        if os.path.exists("/proc/self/stat"):
            return ""
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return ""
        return "alive"
