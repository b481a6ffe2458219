"""Threads that take work over without a wait.

To start a thread, Python waits until it runs: milliseconds where other processes are busy. So each
is started once, and then waits for work. It is a daemon, because one that waits for work must not
keep the process from ending; what was given to it is still finished before the process ends.

`atexit` comes too late for that: by then `concurrent.futures` has closed its pools, and boto3
uploads with one. It does so in a hook of `threading`, where what was registered last comes first.
That hook has no public name: should it go, `atexit` stands in for it.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 (its hook has to be there before ours)
import os
import sys
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue

ending = threading.Event()  # set when the process ends and only waits for workers
_alive: weakref.WeakSet[Worker] = weakref.WeakSet()


class Worker:
    """One thread that does what it is given, in order; it ends when nobody holds the worker.

    Args:
        name: Of the thread.
        niceness: Of this thread alone, 0 to 19: the higher, the more goes before it. It cannot be
            lowered again without privileges. Elsewhere than on Linux it has no effect.
    """

    def __init__(self, name: str, *, niceness: int = 0) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(
            target=_serve, args=(self._work, niceness), name=name, daemon=True
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


def _serve(queue: SimpleQueue[Callable[[], None] | None], niceness: int) -> None:
    if niceness and sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
    while (work := queue.get()) is not None:
        work()
        del work  # it holds on to memory


def _end_all() -> None:
    ending.set()
    for worker in list(_alive):
        worker.end()


getattr(threading, "_register_atexit", atexit.register)(_end_all)
