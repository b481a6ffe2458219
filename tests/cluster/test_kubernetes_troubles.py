"""What goes wrong on nodes and by rule, and what TrainJobs and pods say of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import kubeflow.trainer.options as options
import pytest
from kubernetes import client

from tests.cluster.kube_store import CLUSTER_RUNTIMES, EVENTS, PODS, QUOTAS, SECRETS
from tests.cluster.kubernetes_server import (
    KubernetesServer,
    PodHandle,
    Trouble,
    exits_with,
    torch_runtime,
)
from tests.cluster.trainjob_samples import condition, phases, strict_runtime, train


@pytest.fixture
def trainer(kubernetes_server: KubernetesServer, trainer_client: Callable[..., Any]) -> Any:
    return trainer_client(kubernetes_server)


@pytest.fixture
def core(kubernetes_server: KubernetesServer, kubernetes_client: Callable[..., Any]) -> Any:
    return client.CoreV1Api(kubernetes_client(kubernetes_server))


def told(server: KubernetesServer, reason: str) -> list[str]:
    return [each["message"] for each in server.store.list(EVENTS) if each["reason"] == reason]


def running(server: KubernetesServer, nodes: int = 1) -> None:
    server.until(lambda: phases(server).count("Running") == nodes)


def test_an_image_that_cannot_be_pulled_keeps_the_pod_waiting(
    kubernetes_server: KubernetesServer, trainer: Any, core: Any
) -> None:
    kubernetes_server.troubles.append(Trouble("image", "not found"))
    train(trainer, "torchrun")

    def waiting() -> str:
        (pod,) = kubernetes_server.pods("job-a")
        statuses = pod["status"].get("containerStatuses", [{"state": {"waiting": {"reason": ""}}}])
        return str(statuses[0]["state"]["waiting"]["reason"])

    kubernetes_server.until(lambda: waiting() == "ImagePullBackOff")
    assert phases(kubernetes_server) == ["Pending"]
    assert trainer.get_job("job-a").status == "Created"
    (said,) = told(kubernetes_server, "Failed")
    assert said == (
        'failed to pull and unpack image "registry.example.com/ours@sha256:0": not found'
    )
    (pod,) = kubernetes_server.pods("job-a")
    with pytest.raises(client.ApiException) as error:
        core.read_namespaced_pod_log(pod["metadata"]["name"], "default")
    assert error.value.status == 400
    assert "is waiting to start: trying and failing to pull image" in error.value.body
    kubernetes_server.troubles.clear()
    running(kubernetes_server)


def test_a_pod_that_fits_nowhere_says_so(kubernetes_server: KubernetesServer, trainer: Any) -> None:
    said = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    kubernetes_server.troubles.append(Trouble("unschedulable", said))
    train(trainer, "torchrun", nodes=2, resources={"gpu": 8})
    kubernetes_server.until(lambda: told(kubernetes_server, "FailedScheduling") == [said, said])
    pod = kubernetes_server.pods("job-a")[0]
    (scheduled,) = pod["status"]["conditions"]
    assert (scheduled["status"], scheduled["reason"]) == ("False", "Unschedulable")
    trainer.delete_job("job-a")
    kubernetes_server.until(lambda: not kubernetes_server.store.list(PODS))


def test_a_missing_secret_keeps_the_container_from_starting(
    kubernetes_server: KubernetesServer, trainer: Any
) -> None:
    runtime = torch_runtime("secretive")
    job = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]
    source = {"secretKeyRef": {"name": "s3", "key": "key"}}
    job["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "KEY", "valueFrom": source}]
    kubernetes_server.apply(CLUSTER_RUNTIMES, runtime)
    train(trainer, "torchrun", runtime="secretive")
    kubernetes_server.until(lambda: bool(told(kubernetes_server, "Failed")))
    assert set(told(kubernetes_server, "Failed")) == {'Error: secret "s3" not found'}
    assert kubernetes_server.pods("job-a")[0]["status"]["phase"] == "Pending"
    secret = {"metadata": {"name": "s3", "namespace": "default"}, "data": {"key": "eA=="}}
    kubernetes_server.apply(SECRETS, secret)
    running(kubernetes_server)


def test_a_quota_refuses_a_job_or_its_pods(
    kubernetes_server: KubernetesServer, trainer: Any, kubernetes_client: Callable[..., Any]
) -> None:
    quota = {"metadata": {"name": "gpus", "namespace": "default"},
             "spec": {"hard": {"requests.nvidia.com/gpu": "8"}}}  # fmt: skip
    kubernetes_server.apply(QUOTAS, quota)
    train(trainer, "torchrun", nodes=2, resources={"gpu": 8})
    (said,) = told(kubernetes_server, "FailedCreate")
    assert said.startswith('Error creating: pods "job-a-node-0-1-')
    assert said.endswith(
        "is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=8, "
        "used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8"
    )
    assert len(kubernetes_server.pods("job-a")) == 1
    core = client.CoreV1Api(kubernetes_client(kubernetes_server))
    core.patch_namespaced_resource_quota(
        "gpus",
        "default",
        {
            "spec": {
                "hard": {
                    "requests.nvidia.com/gpu": "16",
                    "count/trainjobs.trainer.kubeflow.org": "1",
                }
            }
        },
    )
    running(kubernetes_server, 2)
    with pytest.raises(RuntimeError, match="Failed to create TrainJob") as error:
        train(trainer, "torchrun", name="job-b")
    cause = error.value.__cause__
    assert isinstance(cause, client.ApiException)
    assert cause.status == 403
    assert "exceeded quota: gpus, requested: count/trainjobs.trainer.kubeflow.org=1" in cause.body


def test_a_container_that_fails_is_started_again_in_place_until_the_limit(
    kubernetes_server: KubernetesServer, trainer: Any, core: Any
) -> None:
    """So it is with the runtime as shipped; the pod is then deleted, and its words with it."""
    train(trainer, "torchrun")
    running(kubernetes_server)
    (pod,) = kubernetes_server.pods("job-a")
    name = pod["metadata"]["name"]
    (handle,) = kubernetes_server.handles("job-a")
    kubernetes_server.end_pod(handle, 1, "first try")
    kubernetes_server.until(
        lambda: (
            kubernetes_server.pods("job-a")[0]["status"]["containerStatuses"][0]["restartCount"]
            == 1
        )
    )
    assert core.read_namespaced_pod_log(name, "default", previous=True) == "first try\n"
    kubernetes_server.executor = exits_with(1)
    kubernetes_server.end_pod(handle, 1)
    kubernetes_server.until(lambda: condition(kubernetes_server)[0] == "Failed")
    kubernetes_server.until(lambda: not kubernetes_server.pods("job-a"))
    assert told(kubernetes_server, "BackoffLimitExceeded") == [
        "Job has reached the specified backoff limit"
    ]


def test_a_lost_node_restarts_the_job_up_to_the_limit_of_the_jobset(
    kubernetes_server: KubernetesServer, trainer: Any
) -> None:
    train(trainer, "torchrun", nodes=2, runtime=strict_runtime(kubernetes_server, restarts=1))
    running(kubernetes_server, 2)
    before = {pod["metadata"]["name"]: pod for pod in kubernetes_server.pods("job-a")}
    handles = kubernetes_server.handles("job-a")
    lost = kubernetes_server.lose_node(next(iter(before.values()))["spec"]["nodeName"])
    assert len(lost) == 1
    kubernetes_server.until(
        lambda: (
            phases(kubernetes_server) == ["Running", "Running"]
            and not before.keys()
            & {pod["metadata"]["name"] for pod in kubernetes_server.pods("job-a")}
        )
    )
    survivor = next(handle for handle in handles if handle.name not in lost)
    assert survivor.stop.is_set()  # all start again, together
    labels = kubernetes_server.pods("job-a")[0]["metadata"]["labels"]
    assert labels["jobset.sigs.k8s.io/restart-attempt"] == "1"
    assert condition(kubernetes_server) == ("", "", "")
    kubernetes_server.lose_node(kubernetes_server.pods("job-a")[0]["spec"]["nodeName"])
    kubernetes_server.until(lambda: condition(kubernetes_server)[0] == "Failed")
    assert condition(kubernetes_server)[1:] == (
        "ReachedMaxRestarts",
        "jobset failed due to reaching max number of restarts (first failed job: job-a-node-0)",
    )


def test_an_evicted_pod_is_made_anew_where_the_policy_ignores_disruptions(
    kubernetes_server: KubernetesServer, trainer: Any
) -> None:
    rules = [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [2]}},
    ]
    runtime = strict_runtime(kubernetes_server, podFailurePolicy={"rules": rules})
    train(trainer, "torchrun", runtime=runtime)
    running(kubernetes_server)
    (first,) = kubernetes_server.pods("job-a")
    kubernetes_server.evict(first)
    kubernetes_server.until(lambda: sorted(phases(kubernetes_server)) == ["Failed", "Running"])
    pods = {pod["status"]["phase"]: pod for pod in kubernetes_server.pods("job-a")}
    assert pods["Failed"]["status"]["reason"] == "Evicted"
    (handle,) = kubernetes_server.handles("job-a")
    kubernetes_server.end_pod(handle, 2)
    kubernetes_server.until(lambda: condition(kubernetes_server)[0] == "Failed")
    (said,) = told(kubernetes_server, "PodFailurePolicy")
    assert said.endswith("failed with exit code 2 matching FailJob rule at index 1")


def test_a_container_out_of_memory_ends_with_137(
    kubernetes_server: KubernetesServer, trainer: Any
) -> None:
    train(trainer, "torchrun", runtime=strict_runtime(kubernetes_server))
    running(kubernetes_server)
    (pod,) = kubernetes_server.pods("job-a")
    kubernetes_server.out_of_memory(pod)
    kubernetes_server.until(lambda: condition(kubernetes_server)[0] == "Failed")
    (pod,) = kubernetes_server.pods("job-a")
    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")


def test_a_job_past_its_deadline_fails_and_its_pods_go(
    kubernetes_server: KubernetesServer, trainer: Any
) -> None:
    train(trainer, "torchrun", more=(options.ActiveDeadlineSeconds(2),))
    kubernetes_server.until(lambda: condition(kubernetes_server)[0] == "Failed")
    assert condition(kubernetes_server)[1:] == (
        "DeadlineExceeded",
        "TrainJob exceeded its active deadline",
    )
    kubernetes_server.until(lambda: not kubernetes_server.pods("job-a"))


def test_a_job_may_be_made_again_while_the_pods_of_the_old_one_end(
    kubernetes_server: KubernetesServer, trainer: Any
) -> None:
    let_go = threading.Event()

    def slowly(handle: PodHandle) -> int:
        handle.stop.wait(30)
        let_go.wait(30)
        return 0

    kubernetes_server.executor = slowly
    train(trainer, "torchrun")
    running(kubernetes_server)
    (old,) = kubernetes_server.pods("job-a")
    trainer.delete_job("job-a")
    kubernetes_server.executor = exits_with(0)
    train(trainer, "torchrun")
    kubernetes_server.until(lambda: condition(kubernetes_server)[0] == "Complete")
    assert old["metadata"]["name"] in {
        pod["metadata"]["name"] for pod in kubernetes_server.pods("job-a")
    }
    let_go.set()
    kubernetes_server.until(lambda: phases(kubernetes_server) == ["Succeeded"])
    assert condition(kubernetes_server)[0] == "Complete"


def test_a_pod_deleted_by_hand_is_made_anew(
    kubernetes_server: KubernetesServer, trainer: Any, core: Any
) -> None:
    train(trainer, "torchrun", runtime=strict_runtime(kubernetes_server, backoff=1))
    running(kubernetes_server)
    (first,) = kubernetes_server.pods("job-a")
    core.delete_namespaced_pod(first["metadata"]["name"], "default")
    kubernetes_server.until(
        lambda: (
            [pod["metadata"]["name"] for pod in kubernetes_server.pods("job-a")]
            != [first["metadata"]["name"]]
            and phases(kubernetes_server) == ["Running"]
        )
    )
    assert told(kubernetes_server, "Killing") == ["Stopping container node"]
