"""Threads that take work over without a wait.

To start a thread, Python waits until it runs: milliseconds where other processes are busy. So each
is started once, and then waits for work. It is a daemon, because one that waits for work must not
keep the process from ending; what was given to it is still finished before the process ends.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue

_alive: weakref.WeakSet[Worker] = weakref.WeakSet()


class Worker:
    """One thread that does what it is given, in order; it ends when nobody holds the worker.

    Args:
        name: Of the thread.
        patient: Let everything else go first. Linux: of this thread only; elsewhere no effect.
    """

    def __init__(self, name: str, *, patient: bool = False) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(
            target=_serve, args=(self._work, patient), name=name, daemon=True
        )
        self._thread.start()
        weakref.finalize(self, self._work.put, None)
        _alive.add(self)

    def give(self, work: Callable[[], None]) -> None:
        """Have some work done, which raises nothing; returns at once."""
        self._work.put(work)

    def end(self) -> None:
        """Have the thread end after the work it was given, and wait for that."""
        self._work.put(None)
        self._thread.join()


def _serve(queue: SimpleQueue[Callable[[], None] | None], patient: bool) -> None:
    if patient and sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
    while (work := queue.get()) is not None:
        work()
        del work  # it holds on to memory


@atexit.register
def _end_all() -> None:
    for worker in list(_alive):
        worker.end()
