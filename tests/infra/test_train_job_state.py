"""How a TrainJob is, in words, from whatever goes wrong on the nodes of a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from infra.trainer.state import HOPELESS, PULLING, JobState
from tests.cluster.conftest import kubernetes_server as kubernetes_server
from tests.cluster.kube_store import QUOTAS
from tests.cluster.kubernetes_server import KubernetesServer, Trouble, torch_runtime
from tests.infra.trainer_samples import NAME, jobs_of, request


def _come_to(server: KubernetesServer, met: Callable[[JobState], bool]) -> JobState:
    """Look until something is so."""
    jobs, end = jobs_of(server), time.monotonic() + 20
    while not met(state := jobs.look(NAME, nodes=2)):
        assert time.monotonic() < end, state
        time.sleep(0.02)
    return state


def _running(server: KubernetesServer) -> JobState:
    return _come_to(server, lambda state: state.phase == "running")


def test_a_job_runs_and_completes(kubernetes_server: KubernetesServer) -> None:
    jobs_of(kubernetes_server).submit(request())
    running = _running(kubernetes_server)
    assert (running.running, running.over) == (2, False)
    assert running.words == f"TrainJob {NAME}: 2 of 2 nodes run"
    kubernetes_server.end_job(NAME)
    assert _come_to(kubernetes_server, lambda state: state.phase == "complete").over


def test_a_job_that_is_not_there_is_gone(kubernetes_server: KubernetesServer) -> None:
    state = jobs_of(kubernetes_server).look(NAME, nodes=2)
    assert (state.phase, state.over) == ("gone", True)


def test_an_image_that_cannot_be_pulled_is_named(kubernetes_server: KubernetesServer) -> None:
    kubernetes_server.troubles.append(Trouble("image", "401 Unauthorized"))
    jobs_of(kubernetes_server).submit(request())
    state = _come_to(kubernetes_server, lambda state: bool(state.troubles))
    assert state.phase == "pending"
    assert {trouble.reason for trouble in state.troubles} <= PULLING
    assert "node 0 (pod" in state.words
    assert "pull_secrets" in state.hint


def test_a_secret_that_is_missing_is_hopeless(kubernetes_server: KubernetesServer) -> None:
    jobs_of(kubernetes_server).submit(request(secrets={"KEY": ("absent", "KEY")}))
    state = _come_to(kubernetes_server, lambda state: bool(state.troubles))
    assert state.troubles[0].reason in HOPELESS
    assert 'secret "absent" not found' in state.words
    assert "cluster.secrets" in state.hint


def test_what_finds_no_machine_says_what_the_scheduler_says(
    kubernetes_server: KubernetesServer,
) -> None:
    said = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    kubernetes_server.troubles.append(Trouble("unschedulable", said))
    jobs_of(kubernetes_server).submit(request())
    state = _come_to(kubernetes_server, lambda state: bool(state.troubles))
    assert (state.phase, state.troubles[0].reason) == ("pending", "Unschedulable")
    assert said in state.words
    kubernetes_server.troubles.clear()
    assert _running(kubernetes_server).troubles == []


def test_pods_that_a_quota_refuses_are_known_by_their_events(
    kubernetes_server: KubernetesServer,
) -> None:
    kubernetes_server.apply(
        QUOTAS,
        {"metadata": {"name": "few", "namespace": "default"}, "spec": {"hard": {"pods": "1"}}},
    )
    jobs_of(kubernetes_server).submit(request())
    state = _come_to(kubernetes_server, lambda state: state.running == 1)
    assert state.phase == "pending"
    assert "exceeded quota: few" in state.words
    assert state.hint


@pytest.mark.parametrize(
    ("what", "reason"), [("memory", "OOMKilled"), ("evicted", "Evicted"), ("lost", "")]
)
def test_a_node_that_is_lost_is_replaced_and_why_is_known(
    kubernetes_server: KubernetesServer, what: str, reason: str
) -> None:
    jobs_of(kubernetes_server).submit(request())
    _running(kubernetes_server)
    pod = kubernetes_server.pods(NAME)[1]
    if what == "memory":
        kubernetes_server.out_of_memory(pod)
        state = _come_to(kubernetes_server, lambda state: bool(state.troubles))
        assert state.troubles[0].reason == reason
        assert "memory" in state.hint
    elif what == "evicted":
        kubernetes_server.evict(pod)
    else:
        kubernetes_server.lose_node(pod["spec"]["nodeName"])
        kubernetes_server.until(
            lambda: (
                pod["metadata"]["name"]
                not in {p["metadata"]["name"] for p in kubernetes_server.pods(NAME)}
            )
        )
    assert _running(kubernetes_server).running == 2


def test_of_two_pods_of_one_node_made_in_one_second_the_one_that_is_there_counts(
    kubernetes_server: KubernetesServer,
) -> None:
    jobs_of(kubernetes_server).submit(request())
    _running(kubernetes_server)
    for _ in range(5):  # names are random, and lists are in their order
        old = next(p for p in kubernetes_server.pods(NAME) if p["status"]["phase"] == "Running")
        kubernetes_server.evict(old)
        kubernetes_server.until(lambda old=old: old not in kubernetes_server.pods(NAME))  # type: ignore[misc]
        assert _running(kubernetes_server).running == 2


def test_a_job_that_has_failed_says_why_and_what_to_do(
    kubernetes_server: KubernetesServer,
) -> None:
    never = torch_runtime("no-second-try", job={"backoffLimit": 0}, pod={"restartPolicy": "Never"})
    from tests.cluster.kube_store import CLUSTER_RUNTIMES

    kubernetes_server.apply(CLUSTER_RUNTIMES, never)
    jobs_of(kubernetes_server).submit(request(runtime="no-second-try"))
    _running(kubernetes_server)
    kubernetes_server.out_of_memory(kubernetes_server.pods(NAME)[0])
    state = _come_to(kubernetes_server, lambda state: state.phase == "failed")
    assert state.over
    assert "jobset failed" in state.words
    assert "OOMKilled" in state.words
    assert "batch_size" in state.hint


def test_a_deadline_that_has_passed_is_said_as_such(kubernetes_server: KubernetesServer) -> None:
    jobs_of(kubernetes_server).submit(request(deadline=10))  # half a second here
    state = _come_to(kubernetes_server, lambda state: state.phase == "failed")
    assert "DeadlineExceeded" in state.words
    assert "timeout" in state.hint


def test_a_job_that_kueue_holds_back_waits_to_be_let_in(
    kubernetes_server: KubernetesServer,
) -> None:
    jobs = jobs_of(kubernetes_server)
    jobs.submit(request())
    for suspended, phase in ((True, "queued"), (False, "running")):
        jobs.api.custom.patch_namespaced_custom_object(
            "trainer.kubeflow.org", "v1alpha1", "default", "trainjobs", NAME,
            {"spec": {"suspend": suspended}},
        )  # fmt: skip
        state = _come_to(kubernetes_server, lambda state, phase=phase: state.phase == phase)  # type: ignore[misc]
        assert not state.over
