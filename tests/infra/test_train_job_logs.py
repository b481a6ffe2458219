"""What pods print comes back: each line once, through broken connections and restarts."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from infra.trainer import logs
from infra.trainer.logs import Follower, last_lines
from tests.cluster.conftest import kubernetes_server as kubernetes_server
from tests.cluster.faults import reset, truncated_body
from tests.cluster.kubernetes_server import KubernetesServer
from tests.infra.trainer_samples import NAME, jobs_of, request

_LOG = "/api/v1/namespaces/default/pods/*/log"


def _until(met: Callable[[], bool], *, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


def _cut(server: KubernetesServer) -> None:
    """Break what connections there are."""
    with server.lock:
        for connection in server._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def _started(server: KubernetesServer) -> None:
    jobs_of(server).submit(request())
    server.until(lambda: len(server.handles(NAME)) == 2)


def test_lines_of_node_0_come_as_they_are_printed(kubernetes_server: KubernetesServer) -> None:
    _started(kubernetes_server)
    said: list[str] = []
    follower = Follower(jobs_of(kubernetes_server), NAME, say=said.append)
    first, second = kubernetes_server.handles(NAME)
    first.log("step 20  loss 0.5")
    second.log("of another node")
    _until(lambda: said == ["step 20  loss 0.5"])
    first.log("über — tabs\tand  spaces")
    _until(lambda: len(said) > 1)
    follower.close(wait=0)
    assert said == ["step 20  loss 0.5", "über — tabs\tand  spaces"]


def test_no_line_is_lost_or_repeated_when_connections_break(
    kubernetes_server: KubernetesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_PAUSE", 0.02)
    _started(kubernetes_server)
    kubernetes_server.faults.add("GET", _LOG, reset(), nth=1)
    kubernetes_server.faults.add("GET", _LOG, truncated_body(), nth=2)
    handle = kubernetes_server.handles(NAME)[0]
    for number in range(50):
        handle.log(f"line {number}")
    said: list[str] = []
    follower = Follower(jobs_of(kubernetes_server), NAME, say=said.append)
    _until(lambda: len(said) >= 50)
    for number in range(50, 60):
        _cut(kubernetes_server)
        handle.log(f"line {number}")
        _until(lambda number=number: len(said) > number)  # type: ignore[misc]
    assert said == [f"line {number}" for number in range(60)]
    follower.close(wait=0)


def test_a_pod_that_is_started_anew_is_followed_on(kubernetes_server: KubernetesServer) -> None:
    _started(kubernetes_server)
    said: list[str] = []
    follower = Follower(jobs_of(kubernetes_server), NAME, say=said.append)
    handle = kubernetes_server.handles(NAME)[0]
    handle.log("before")
    _until(lambda: said == ["before"])
    kubernetes_server.end_pod(handle, 1)
    kubernetes_server.until(lambda: handle.previous is not None)
    handle.log("after")
    _until(lambda: said == ["before", "after"])
    pod = kubernetes_server.pods(NAME)[0]["metadata"]["name"]
    jobs = jobs_of(kubernetes_server)
    assert last_lines(jobs, pod) == ["after"]
    assert last_lines(jobs, pod, previous=True) == ["before"]
    follower.close(wait=0)


def test_the_last_lines_of_a_pod_that_is_gone_are_none(
    kubernetes_server: KubernetesServer,
) -> None:
    assert last_lines(jobs_of(kubernetes_server), "gone") == []
