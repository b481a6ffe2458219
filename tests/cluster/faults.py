"""What goes wrong between a client and a double, scripted per method, path and number of the call.

    server.faults.add("POST", "/apis/v2beta1/runs", lost_reply())  # the first such call
    server.faults.add("GET", "*", answer(503), nth=3, times=2)  # the third and the fourth
    server.faults.script = lambda call: reset() if random() < 0.1 else None  # any rule

Paths are matched as file names are (`*`, `?`), without the query. What was done is in `done`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

Kind = Literal["hang", "reset", "lost_reply", "answer", "slow_body", "truncated_body"]


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong; made by the functions below."""

    kind: Kind
    status: int = 0
    seconds: float = 0.0
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None


def hang(seconds: float = 600) -> Fault:
    """Take the request, do nothing, say nothing; hang up in the end, or when the server closes."""
    return Fault("hang", seconds=seconds)


def reset() -> Fault:
    """Reset the connection before the request is handled."""
    return Fault("reset")


def lost_reply() -> Fault:
    """Handle the request, then reset the connection: done, but the client does not know."""
    return Fault("lost_reply")


def answer(
    status: int, *, retry_after: int | str | None = None, body: bytes | None = None
) -> Fault:
    """Answer with an error instead of handling; without `body`, with one of the server's own."""
    headers = () if retry_after is None else (("Retry-After", str(retry_after)),)
    return Fault("answer", status=status, headers=headers, body=body)


def slow_body(seconds: float) -> Fault:
    """Handle the request and send the reply's body in ten pieces over `seconds`."""
    return Fault("slow_body", seconds=seconds)


def truncated_body() -> Fault:
    """Handle the request, send half of the body, hang up."""
    return Fault("truncated_body")


@dataclass(frozen=True)
class Call:
    """What a script may look at: the number of this call among all, its method and path."""

    number: int
    method: str
    path: str


@dataclass
class _Rule:
    method: str
    pattern: str
    fault: Fault
    nth: int
    times: int | None
    seen: int = 0

    def meets(self, call: Call) -> bool:
        if self.method not in ("*", call.method) or not fnmatchcase(call.path, self.pattern):
            return False
        self.seen += 1
        last = None if self.times is None else self.nth + self.times - 1
        return self.seen >= self.nth and (last is None or self.seen <= last)


class Faults:
    """The script of a double.

    Attributes:
        script: Asked first, for every call; None leaves it to the rules.
        done: The faults that happened, with the call that met each.
    """

    def __init__(self) -> None:
        self.script: Callable[[Call], Fault | None] = lambda call: None
        self.done: list[tuple[Fault, Call]] = []
        self._rules: list[_Rule] = []
        self._calls = 0
        self._lock = threading.Lock()

    def add(
        self, method: str, path: str, fault: Fault, *, nth: int = 1, times: int | None = 1
    ) -> None:
        """From the `nth` call from now on that matches, `times` times (None: for ever)."""
        with self._lock:
            self._rules.append(_Rule(method, path, fault, nth, times))

    def clear(self) -> None:
        with self._lock:
            self._rules.clear()
            self.script = lambda call: None

    def next(self, method: str, path: str) -> Fault | None:
        """The fault that the next call meets; every rule counts every call that it matches."""
        with self._lock:
            self._calls += 1
            call = Call(self._calls, method, path)
            found = self.script(call)
            for rule in self._rules:
                if rule.meets(call) and found is None:
                    found = rule.fault
            if found is not None:
                self.done.append((found, call))
            return found
