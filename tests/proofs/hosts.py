"""Hosts of this machine: network namespaces joined by a cable, or, where those may not be made,
processes on loopback.

    with open_hosts(2) as hosts:
        process = hosts[0].start([...], env)
        hosts[1].die()                # everything that runs there is gone, and nobody is told
        hosts[1].unplug(3.0)
    hosts[1].vanish()             # as when the machine is off: its peers' connections do not break

A namespace has interfaces and addresses of its own: what binds to the wrong one, or believes that
the other is at 127.0.0.1, does not work there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_MARK = "PROOF_HOST"  # in the environment of all that runs on a host


class Host:
    """A place where processes run.

    Attributes:
        number: From 0.
        address: Under which the others reach it.
    """

    def __init__(self, number: int, address: str, *, namespace: str = "", switch: str = "") -> None:
        self.number, self.address = number, address
        self.namespace, self.switch = namespace, switch
        self._mark = uuid.uuid4().hex

    def start(
        self, command: Sequence[str], env: Mapping[str, str], log: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        """Start a program there."""
        where = ["ip", "netns", "exec", self.namespace] if self.namespace else []
        return subprocess.Popen(
            [*where, *command], env={**env, _MARK: self._mark}, stdout=log, stderr=log, cwd="/",
            start_new_session=True,
        )  # fmt: skip

    def processes(self, word: str = "") -> list[int]:
        """Return the numbers of the processes there whose command line has a word."""
        mark, found = f"{_MARK}={self._mark}".encode(), []
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                ours = mark in (place / "environ").read_bytes().split(b"\0")
                if ours and word.encode() in (place / "cmdline").read_bytes():
                    found.append(int(place.name))
        return found

    def kill(self, word: str, number: int = signal.SIGKILL) -> int:
        """Signal the processes whose command line has a word; return how many there were."""
        found = self.processes(word)
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
        return len(found)

    def die(self) -> int:
        """Kill all that runs there, as when a pod is gone; return how much there was."""
        count = 0
        while killed := self.kill(""):
            count += killed
            time.sleep(0.02)
        return count

    def vanish(self) -> int:
        """Lose the machine with its connections; another one has its address then.

        On loopback it is as `die`.
        """
        if not self.namespace:
            return self.die()
        _ip("-n", self.namespace, "link", "set", "eth0", "down")
        count = self.die()
        _ip("netns", "del", self.namespace)
        self.plug_in()
        return count

    def plug_in(self) -> None:
        """Make the namespace, with a cable to the switch."""
        port = f"port{self.number}"
        _ip("netns", "add", self.namespace)
        _ip("-n", self.namespace, "link", "set", "lo", "up")
        with contextlib.suppress(subprocess.CalledProcessError):  # a namespace takes it along
            _ip("-n", self.switch, "link", "del", port)
        _ip("-n", self.switch, "link", "add", port, "type", "veth", "peer", "name", "eth0",
            "netns", self.namespace)  # fmt: skip
        _ip("-n", self.switch, "link", "set", port, "master", "bridge", "up")
        _ip("-n", self.namespace, "addr", "add", f"{self.address}/24", "dev", "eth0")
        _ip("-n", self.namespace, "link", "set", "eth0", "up")

    def unplug(self, seconds: float) -> None:
        """Pull the cable for a while (a namespace's; loopback has none)."""
        if self.namespace:
            _ip("-n", self.namespace, "link", "set", "eth0", "down")
            time.sleep(seconds)
            _ip("-n", self.namespace, "link", "set", "eth0", "up")


@contextmanager
def open_hosts(count: int) -> Iterator[list[Host]]:
    """Make hosts; what runs there at the end is killed."""
    opened = _namespaces(count) if _can_make_namespaces() else _loopback(count)
    with opened as hosts:
        try:
            yield hosts
        finally:
            for host in hosts:
                host.die()


@contextmanager
def _loopback(count: int) -> Iterator[list[Host]]:
    yield [Host(number, "127.0.0.1") for number in range(count)]


@contextmanager
def _namespaces(count: int) -> Iterator[list[Host]]:
    """Namespaces on one bridge, which is in one of its own: this machine sees none of it."""
    name = f"proof{os.getpid()}"
    switch = f"{name}-switch"
    hosts = [
        Host(number, f"10.77.0.{number + 1}", namespace=f"{name}-{number}", switch=switch)
        for number in range(count)
    ]
    try:
        _ip("netns", "add", switch)
        _ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        _ip("-n", switch, "link", "set", "bridge", "up")
        for host in hosts:
            host.plug_in()
        yield hosts
    finally:
        for each in (*(host.namespace for host in hosts), switch):
            with contextlib.suppress(subprocess.CalledProcessError):
                _ip("netns", "del", each)


def _can_make_namespaces() -> bool:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"proof{os.getpid()}-try"
    try:
        _ip("netns", "add", name)
        _ip("-n", name, "link", "add", "bridge", "type", "bridge")
    except (subprocess.CalledProcessError, OSError):
        return False
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            _ip("netns", "del", name)
    return True


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
