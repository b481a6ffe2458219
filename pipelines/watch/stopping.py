"""SIGTERM and Ctrl-C end the watcher at once where it waits, elsewhere when the turn is done."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopAsked(BaseException):
    """Somebody asked the watcher to stop while it waited; nothing was half done."""


class Stopping:
    """What a signal does while this is entered; a second one interrupts whatever is under way.

    Attributes:
        asked: By which signal; None: nobody asked.
    """

    def __init__(self) -> None:
        self.asked: signal.Signals | None = None
        self._waiting = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Stopping:
        self._before = {number: signal.signal(number, self._ask) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let a signal end the block: nothing in it may be lost by that.

        Raises:
            StopAsked: There was one, now or before.
        """
        self._waiting = True
        try:
            if self.asked is not None:
                raise StopAsked
            yield
        finally:
            self._waiting = False

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked is not None:
            raise KeyboardInterrupt
        self.asked = signal.Signals(number)
        if self._waiting:
            raise StopAsked
