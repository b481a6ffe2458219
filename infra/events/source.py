"""The contract of a source of events.

    events = source.wait(20)
    …                       # make safe what they say
    source.confirm()        # now they may be forgotten

An event says that something came, and is worth a look; what is there then, only a listing says. So
events may come twice, late, or in any order, and whoever gets them loses nothing by one that never
came but time: a listing every so often finds what it was about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol


class Event(NamedTuple):
    """One object that came, or got another content.

    Attributes:
        key: The object, in words; empty: it is not known which.
        at: When, Unix time by the source's clock; 0: not known. For figures, not for decisions.
    """

    key: str
    at: float


class EventSource(Protocol):
    """Events of the objects that somebody asked for, at least once each.

    Every method raises `OutsideError` when the source cannot be reached.

    Attributes:
        name: Its kind, as figures label it.
        about: Where it looks, in words.
        looks: How often it looked there with success.
    """

    name: str
    about: str
    looks: int

    def wait(self, seconds: float) -> list[Event]:
        """Return events; if there are none, wait for the first of them.

        What is not confirmed comes again: from this source, or from another one of its kind that
        was there before it came.

        Args:
            seconds: To wait at most; 0: look now, and do not wait.
        """

    def confirm(self) -> None:
        """Let go of what the last `wait` returned: it is safe."""


class Silence:
    """A source without events: for a watcher that goes by the clock alone.

    Args:
        sleep: Waits so many seconds.
    """

    name, about, looks = "none", "nothing", 0

    def __init__(self, sleep: Callable[[float], None]) -> None:
        self._sleep = sleep

    def wait(self, seconds: float) -> list[Event]:
        self._sleep(seconds)
        return []

    def confirm(self) -> None:
        """There is nothing to let go of."""
