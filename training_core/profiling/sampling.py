"""Which lines of the user's the time is spent in: a thread looks at the stacks now and then."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Self

from training_core.profiling.phases import Phase
from training_core.profiling.places import Place, users_place

_EVERY = 0.001  # seconds between two looks
_SWITCH = 0.0005  # seconds after which Python gives a waiting thread its turn; usually 0.005


class Sampler:
    """Counts where the thread that made it is, by phase, while the context is open.

    Args:
        phase: Says which phase is under way.

    Attributes:
        seen: Seconds by phase and line of the user's; None: a line of nobody's but ours.
    """

    def __init__(self, phase: Callable[[], Phase]) -> None:
        self._phase, self._watched = phase, threading.get_ident()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="evertrain-sampler", daemon=True)
        self.seen: Counter[tuple[Phase, Place | None]] = Counter()

    def __enter__(self) -> Self:
        self._switch = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()
        sys.setswitchinterval(self._switch)

    def _run(self) -> None:
        before = time.perf_counter()
        while not self._ended.wait(_EVERY):
            frames, now = sys._current_frames(), time.perf_counter()
            place = users_place(frames.pop(self._watched, None))
            if place is None and self._phase() == "input":  # a thread may prepare batches ahead
                frames.pop(threading.get_ident(), None)
                found = (users_place(frame) for frame in frames.values())
                place = next((each for each in found if each is not None), None)
            self.seen[self._phase(), place] += now - before  # type: ignore[assignment]
            before = now
