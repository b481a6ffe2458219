"""A pod as those have it that run it, and what keeps pods from running."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tests.cluster.kube_store import Content


@dataclass
class PodHandle:
    """A pod's container as an executor has it.

    Attributes:
        stop: Set when the pod is to end: SIGTERM.
        kill: Set when it must end now: SIGKILL.
    """

    pod: Content
    container: Content
    environment: dict[str, str]
    stop: threading.Event = field(default_factory=threading.Event)
    kill: threading.Event = field(default_factory=threading.Event)
    told: threading.Event = field(default_factory=threading.Event)
    exit_code: int = 0
    lines: list[tuple[str, str]] = field(default_factory=list)
    previous: list[tuple[str, str]] | None = None
    ended: bool = False

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])

    def log(self, line: str) -> None:
        """Add a line to what the container printed."""
        self.lines.append((datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"), line))

    def until_told(self) -> int:
        """Run until the test ends the pod (`server.end_pod`), or somebody stops it."""
        while not (self.told.wait(0.005) or self.stop.is_set() or self.kill.is_set()):
            pass
        return self.exit_code if self.told.is_set() else 137 if self.kill.is_set() else 143


Executor = Callable[[PodHandle], int]


@dataclass(frozen=True)
class Trouble:
    """Something that keeps pods from running, until it is taken away.

    Args:
        kind: `unschedulable`, or `image`.
        message: What the scheduler, or the registry, says.
        match: Of which pods.
    """

    kind: str
    message: str
    match: Callable[[Content], bool] = lambda pod: True


@dataclass
class Run:
    """A pod's stay on its node.

    Attributes:
        deleted: Somebody deleted it: when its process has ended, the pod goes.
        lost: Its node is gone, and the pod with it.
        reason, evicted: Why it was killed, if not by its deletion.
    """

    handle: PodHandle
    deleted: bool = False
    lost: bool = False
    reason: str = ""
    evicted: str = ""
    since: str = ""
