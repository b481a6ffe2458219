"""The stock `TrainerClient` against the double: train, wait, read the logs, delete."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kubeflow.trainer.options as options
import pytest

from tests.cluster.kube_store import CLUSTER_RUNTIMES, PODS, RUNTIMES, SECRETS
from tests.cluster.kubernetes_server import (
    KubernetesServer,
    LocalProcesses,
    PodHandle,
    exits_with,
    torch_runtime,
)
from tests.cluster.trainjob_samples import SUM, condition, phases, strict_runtime, train


@pytest.fixture
def trainer(kubernetes_server: KubernetesServer, trainer_client: Callable[..., Any]) -> Any:
    return trainer_client(kubernetes_server)


@pytest.mark.smoke
@pytest.mark.slow
def test_two_nodes_train_as_one(
    kubernetes_server: KubernetesServer, trainer: Any, tmp_path: Path
) -> None:
    kubernetes_server.executor = LocalProcesses(tmp_path)
    (tmp_path / "sum.py").write_text(SUM)
    name = train(trainer, "torchrun", str(tmp_path / "sum.py"), nodes=2, resources={"cpu": 1})
    kubernetes_server.until(lambda: phases(kubernetes_server) == ["Running", "Running"])
    lines = list(trainer.get_job_logs(name, follow=True))
    assert [line for line in lines if "sum" in line] == ["node 0 rank 0 of 2: sum 3"]
    ended = trainer.wait_for_job_status(name, timeout=120, polling_interval=1)
    assert (ended.status, ended.num_nodes) == ("Complete", 2)
    assert [(step.name, step.status) for step in ended.steps] == [
        ("node-0", "Succeeded"),
        ("node-1", "Succeeded"),
    ]
    second = [line for line in trainer.get_job_logs(name, step="node-1") if "sum" in line]
    assert second == ["node 1 rank 1 of 2: sum 3"]
    trainer.delete_job(name)
    assert kubernetes_server.pods(name) == []


def test_a_job_is_created_runs_and_completes(
    kubernetes_server: KubernetesServer, trainer: Any
) -> None:
    assert [runtime.name for runtime in trainer.list_runtimes()] == ["torch-distributed"]
    name = train(trainer, "torchrun", "-m", "ours", nodes=2, env={"A": "b"})
    spec = kubernetes_server.trainjob(name)["spec"]
    assert spec["trainer"]["command"] == ["torchrun"]
    assert spec["runtimeRef"]["apiGroup"] == "trainer.kubeflow.org"
    assert spec["suspend"] is False
    kubernetes_server.until(lambda: trainer.get_job(name).status == "Running")
    (counts,) = kubernetes_server.trainjob(name)["status"]["jobsStatus"]
    assert (counts["active"], counts["ready"], counts["succeeded"]) == (1, 1, 0)
    kubernetes_server.end_job(name)
    assert trainer.wait_for_job_status(name, timeout=30, polling_interval=1).status == "Complete"
    assert condition(kubernetes_server) == (
        "Complete",
        "AllJobsCompleted",
        "jobset completed successfully",
    )
    reasons = {event.reason for event in trainer.get_job_events(name)}
    assert {"Scheduled", "Started"} <= reasons
    assert [job.name for job in trainer.list_jobs()] == [name]


def test_a_nodes_environment_is_what_the_torch_plugin_makes(
    kubernetes_server: KubernetesServer, trainer: Any
) -> None:
    seen: list[dict[str, str]] = []

    def look(handle: PodHandle) -> int:
        seen.append(handle.environment)
        return 0

    kubernetes_server.executor = look
    kubernetes_server.apply(
        SECRETS,
        {"metadata": {"name": "s3", "namespace": "default"}, "data": {"key": "c2VjcmV0"}},
    )
    kubernetes_server.apply(CLUSTER_RUNTIMES, _with_secret())
    name = train(trainer, "torchrun", nodes=2, runtime="secretive", env={"A": "b"},
                 resources={"cpu": "1500m", "memory": "1Gi"})  # fmt: skip
    trainer.wait_for_job_status(name, timeout=30, polling_interval=1)
    first, second = sorted(seen, key=lambda each: each["PET_NODE_RANK"])
    assert first == {
        "A": "b", "KEY": "secret", "JOB_COMPLETION_INDEX": "0",
        "PET_NNODES": "2", "PET_NPROC_PER_NODE": "2", "PET_NODE_RANK": "0",
        "PET_MASTER_ADDR": "job-a-node-0-0.job-a", "PET_MASTER_PORT": "29500",
    }  # fmt: skip
    assert second["PET_NODE_RANK"] == "1"


def _with_secret() -> dict[str, Any]:
    runtime = torch_runtime("secretive")
    job = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]
    container = job["template"]["spec"]["template"]["spec"]["containers"][0]
    container["env"] = [
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s3", "key": "key"}}}
    ]
    return runtime


@pytest.mark.parametrize(
    ("resources", "processes"),
    [
        (None, "auto"),
        ({"cpu": 4}, "4"),
        ({"cpu": "1500m"}, "2"),
        ({"gpu": 8}, "auto"),
        ({"memory": "1Gi"}, "1"),
    ],
)
def test_processes_per_node_follow_the_resources(
    resources: dict[str, Any] | None,
    processes: str,
    kubernetes_server: KubernetesServer,
    trainer: Any,
) -> None:
    train(trainer, "torchrun", resources=resources)
    (pod,) = kubernetes_server.pods("job-a")
    env = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}
    assert env["PET_NPROC_PER_NODE"] == processes


def test_patches_of_the_runtime_reach_the_pods(
    kubernetes_server: KubernetesServer, trainer: Any
) -> None:
    patch = options.RuntimePatch(
        options.TrainingRuntimeSpecPatch(
            options.JobSetTemplatePatch(
                spec=options.JobSetSpecPatch(
                    replicated_jobs=[
                        options.ReplicatedJobPatch(
                            name="node",
                            template=options.JobTemplatePatch(
                                spec=options.JobSpecPatch(
                                    template=options.PodTemplatePatch(
                                        metadata={"labels": {"team": "a"}},
                                        spec=options.PodSpecPatch(
                                            node_selector={"pool": "spot"},
                                            service_account_name="trainer",
                                            tolerations=[{"key": "spot", "operator": "Exists"}],
                                            volumes=[{"name": "shm", "emptyDir": {"medium": "Memory"}}],  # noqa: E501
                                            containers=[
                                                options.ContainerPatch(
                                                    name="node",
                                                    volume_mounts=[{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: E501
                                                )
                                            ],
                                        ),
                                    )
                                )
                            ),
                        )
                    ]
                )
            )
        )
    )  # fmt: skip
    train(trainer, "torchrun", more=(patch,))
    (pod,) = kubernetes_server.pods("job-a")
    spec = pod["spec"]
    assert pod["metadata"]["labels"]["team"] == "a"
    assert (spec["nodeSelector"], spec["serviceAccountName"]) == ({"pool": "spot"}, "trainer")
    assert spec["volumes"] == [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    (container,) = spec["containers"]
    assert container["volumeMounts"] == [{"name": "shm", "mountPath": "/dev/shm"}]
    assert container["command"] == ["torchrun"]


def test_a_failed_node_fails_the_job_and_its_last_words_can_be_read(
    kubernetes_server: KubernetesServer, trainer: Any
) -> None:
    kubernetes_server.executor = exits_with(3, "loading", "Traceback: no such file")
    name = train(trainer, "torchrun", nodes=1, runtime=strict_runtime(kubernetes_server))
    with pytest.raises(RuntimeError, match="is Failed"):
        trainer.wait_for_job_status(name, timeout=30, polling_interval=1)
    assert condition(kubernetes_server) == (
        "Failed",
        "FailedJobs",
        "jobset failed due to one or more job failures (first failed job: job-a-node-0)",
    )
    assert list(trainer.get_job_logs(name)) == ["loading", "Traceback: no such file"]
    (pod,) = kubernetes_server.pods(name)
    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (3, "Error")


def test_logs_are_followed_while_they_come(
    kubernetes_server: KubernetesServer, trainer: Any
) -> None:
    name = train(trainer, "torchrun")
    kubernetes_server.until(lambda: phases(kubernetes_server) == ["Running"])
    (handle,) = kubernetes_server.handles(name)
    seen: list[str] = []
    one = threading.Event()

    def read() -> None:
        for line in trainer.get_job_logs(name, follow=True):
            seen.append(line)
            one.set()

    reader = threading.Thread(target=read)
    reader.start()
    handle.log("epoch 1")
    assert one.wait(30)
    kubernetes_server.end_pod(handle, 0, "epoch 2")
    reader.join(30)
    assert seen == ["epoch 1", "epoch 2"]


def test_a_job_of_a_runtime_of_the_namespace_prefers_it(
    kubernetes_server: KubernetesServer, trainer: Any
) -> None:
    ours = torch_runtime("torch-distributed", pod={"priorityClassName": "high"})
    ours["metadata"]["namespace"] = "default"
    kubernetes_server.apply(RUNTIMES, ours)
    train(trainer, "torchrun")
    (pod,) = kubernetes_server.pods("job-a")
    assert pod["spec"]["priorityClassName"] == "high"


def test_deleting_a_job_ends_its_processes_first_softly_then_hard(
    kubernetes_server: KubernetesServer, trainer: Any, tmp_path: Path
) -> None:
    processes = LocalProcesses(tmp_path)
    kubernetes_server.executor = processes
    stubborn = "trap 'echo asked' TERM; echo ready; while :; do sleep 0.05; done"
    name = train(trainer, "sh", "-c", stubborn)
    kubernetes_server.until(lambda: phases(kubernetes_server) == ["Running"])
    (handle,) = kubernetes_server.handles(name)
    while not handle.lines:
        pass
    trainer.delete_job(name)
    with pytest.raises(RuntimeError, match="Failed to get"):
        trainer.get_job(name)
    kubernetes_server.until(lambda: not kubernetes_server.store.list(PODS))
    assert [line for _, line in handle.lines] == ["ready", "asked"]
    assert processes.processes[handle.name].returncode == -9
