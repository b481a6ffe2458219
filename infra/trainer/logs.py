"""What pods print: followed line by line while they run, or the last lines that they printed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from kubernetes import client
from urllib3.exceptions import HTTPError

from infra.errors import OutsideError
from infra.trainer.jobs import TrainJobs
from infra.trainer.request import NODE
from infra.trainer.state import index_of

_IDLE = (5.0, 120.0)  # seconds to connect, and without a line: then it is asked for anew
_PAUSE = 2.0


class Follower:
    """Hands on what node 0 prints, in a thread, until it is closed.

    A broken connection, and a pod that is started anew or replaced, are followed from the first
    line that was not handed on yet.

    Args:
        jobs: Of the namespace.
        name: Of the TrainJob.
        say: Called with each line.

    Attributes:
        seen: The instant of the last line, as the kubelet writes it; "" before the first.
    """

    def __init__(self, jobs: TrainJobs, name: str, *, say: Callable[[str], None]) -> None:
        self._jobs, self._name, self._say = jobs, name, say
        self._closing = threading.Event()
        self.seen = ""
        self._thread = threading.Thread(target=self._follow, name="log of node 0", daemon=True)
        self._thread.start()

    def close(self, *, wait: float = 2.0) -> None:
        """Hand on what comes within the time, and end."""
        self._thread.join(wait)
        self._closing.set()

    def _follow(self) -> None:
        while not self._closing.is_set():
            with suppress(OutsideError, HTTPError, client.ApiException, OSError):
                pods = [p for p in self._jobs.pods(self._name, patience=0) if index_of(p) == 0]
                if pods and pods[0].get("status", {}).get("phase") != "Pending":
                    self._hand_on(pods[0]["metadata"]["name"])
            if self._closing.wait(_PAUSE):
                return

    def _hand_on(self, pod: str) -> None:
        api = self._jobs.api
        reply = api.core.read_namespaced_pod_log(
            pod, api.namespace, container=NODE, follow=True, timestamps=True,
            _preload_content=False, _request_timeout=_IDLE,
        )  # fmt: skip
        try:
            for line in _lines(reply):
                instant, words = _parted(line)
                if instant and instant <= self.seen:
                    continue
                self.seen = instant or self.seen
                self._say(words)
                if self._closing.is_set():
                    return
        finally:
            reply.close()
            reply.release_conn()


def last_lines(jobs: TrainJobs, pod: str, *, count: int = 30, previous: bool = False) -> list[str]:
    """Return the last lines that a pod printed, or that it printed before it was started anew.

    Without them (the pod is gone, or has printed nothing) the list is empty.
    """
    api = jobs.api
    try:
        reply: Any = api.asked(
            f"read the log of pod {pod}",
            lambda: api.core.read_namespaced_pod_log(
                pod, api.namespace, container=NODE, tail_lines=count, previous=previous,
                _preload_content=False,
            ),
            patience=0,
        )  # fmt: skip
    except OutsideError:
        return []
    return bytes(reply.data).decode(errors="replace").splitlines()


def _lines(reply: Any) -> Iterator[str]:
    rest = b""
    for piece in reply.stream(amt=None, decode_content=False):
        *lines, rest = (rest + piece).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines)
    if rest:
        yield rest.decode(errors="replace")


def _parted(line: str) -> tuple[str, str]:
    """Part a line from the instant before it: 2025-01-01T00:00:00.000000001Z words.

    Instants are made comparable as texts: the kubelet leaves zeros at the end out.
    """
    instant, space, words = line.partition(" ")
    if not space or not instant.endswith("Z") or instant[4:5] != "-":
        return "", line
    whole, _, fraction = instant[:-1].partition(".")
    return f"{whole}.{fraction:0<9}", words
