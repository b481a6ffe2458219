"""Events by listing: of a folder, or of a bucket that notifies nobody.

Of a million objects the last ten thousand are listed each time (`ObjectStore.list(after=…)`), for
new ones have new dates, or other keys that sort behind the old ones. What comes elsewhere is not
noticed here: whoever needs it lists everything every so often. Up to ten thousand objects, nothing
escapes. A look takes at most a tenth of the time: where it is slow, the next one is later.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from infra.events.source import Event
from infra.store import ObjectInfo

TAIL = 10_000
SHARE = 0.1  # of the time, spent on looking


class Listed(Protocol):
    """A store, or a part of it, and which of its objects matter."""

    @property
    def uri(self) -> str: ...

    def list(self, *, after: str = "") -> Iterator[ObjectInfo]: ...

    def chosen(self, keys: Sequence[str]) -> Sequence[bool]: ...


class Polling:
    """A source of events that lists places again and again.

    The first look finds nothing new: it is what the later ones are compared with.

    Args:
        places: What is listed.
        every: Seconds between looks, at least.
    """

    name = "polling"

    def __init__(
        self,
        places: Sequence[Listed],
        *,
        every: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.about = ", ".join(place.uri for place in places)
        self.looks = 0
        self._tails = [_Tail(place) for place in places]
        self._every = every
        self._clock, self._sleep, self._now = clock, sleep, now
        self._next = clock()

    def wait(self, seconds: float) -> list[Event]:
        if seconds > 0:
            left = self._next - self._clock()
            self._sleep(max(0.0, min(left, seconds)))
            if left > seconds:
                return []
        return self._look()

    def confirm(self) -> None:
        for tail in self._tails:
            tail.confirm()

    def _look(self) -> list[Event]:
        began = self._clock()
        self._next = began + self._every
        events = []
        for tail in self._tails:
            keys = tail.look()
            which = tail.place.chosen(keys) if keys else []
            at = self._now()
            events += [
                Event(f"{tail.place.uri}/{key}", at)
                for key, matters in zip(keys, which, strict=True)
                if matters
            ]
        self.looks += 1
        took = self._clock() - began
        self._next = began + max(self._every, took / SHARE)
        return events


class _Tail:
    """The last objects of a place, as they were when somebody confirmed that."""

    def __init__(self, place: Listed) -> None:
        self.place = place
        self._after = ""
        self._known: dict[str, tuple[int, str]] | None = None
        self._found: dict[str, tuple[int, str]] | None = None

    def look(self) -> list[str]:
        """Return the keys that are new, or have another version."""
        if self._known is None:
            last = deque(self.place.list(), maxlen=TAIL + 1)
            if len(last) > TAIL:
                self._after = last.popleft().key
            self._known = {info.key: (info.size, info.version) for info in last}
            return []
        listed = self.place.list(after=self._after)
        self._found = {info.key: (info.size, info.version) for info in listed}
        return [key for key, seen in self._found.items() if self._known.get(key) != seen]

    def confirm(self) -> None:
        if self._found is None:
            return
        self._known, self._found = self._found, None
        if len(self._known) > 2 * TAIL:
            keys = list(self._known)
            self._after = keys[-TAIL - 1]
            self._known = {key: self._known[key] for key in keys[-TAIL:]}
