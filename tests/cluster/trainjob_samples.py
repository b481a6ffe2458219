"""TrainJobs that tests make, as the stock client makes them and by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import kubeflow.trainer.options as options
import pytest
from kubeflow.trainer import CustomTrainerContainer
from kubernetes import client as kubernetes

from tests.cluster.kube_runtimes import torch_runtime
from tests.cluster.kube_store import CLUSTER_RUNTIMES, Content
from tests.cluster.kubernetes_server import KubernetesServer

GROUP, VERSION, PLURAL = "trainer.kubeflow.org", "v1alpha1", "trainjobs"

# All ranks of all nodes add up their numbers.
SUM = """
import os, torch, torch.distributed as ranks
ranks.init_process_group("gloo")
total = torch.ones(1) * (ranks.get_rank() + 1)
ranks.all_reduce(total)
print(f"node {os.environ['PET_NODE_RANK']} rank {ranks.get_rank()} of {ranks.get_world_size()}: "
      f"sum {int(total.item())}", flush=True)
ranks.destroy_process_group()
"""


def train(
    client: Any,
    *command: str,
    name: str = "job-a",
    nodes: int = 1,
    runtime: str = "torch-distributed",
    env: dict[str, str] | None = None,
    resources: dict[str, Any] | None = None,
    more: tuple[Any, ...] = (),
) -> str:
    """Create a TrainJob through the stock client; its command is as given."""
    trainer = CustomTrainerContainer(
        image="registry.example.com/ours@sha256:0", num_nodes=nodes, env=env,
        resources_per_node=resources,
    )  # fmt: skip
    words = [options.TrainerCommand([command[0]])] if command else []
    words += [options.TrainerArgs(list(command[1:]))] if command[1:] else []
    made = client.train(
        runtime=runtime, trainer=trainer, options=[options.Name(name), *words, *more]
    )
    assert made == name
    return name


def manifest(name: str = "job-a", **spec: Any) -> Content:
    """A TrainJob as YAML would have it."""
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, **spec},
    }


def strict_runtime(
    server: KubernetesServer, *, restarts: int | None = None, backoff: int = 0, **job: Any
) -> str:
    """A runtime whose pods fail once and for all; the JobSet restarts `restarts` times."""
    policy = None if restarts is None else {"maxRestarts": restarts}
    server.apply(
        CLUSTER_RUNTIMES,
        torch_runtime(
            "strict", job={"backoffLimit": backoff, **job}, pod={"restartPolicy": "Never"},
            failure_policy=policy,
        ),
    )  # fmt: skip
    return "strict"


def condition(server: KubernetesServer, name: str = "job-a") -> tuple[str, str, str]:
    """The last condition of a TrainJob that is true: type, reason, message."""
    conditions = server.trainjob(name).get("status", {}).get("conditions", [])
    for each in reversed(conditions):
        if each["status"] == "True":
            return each["type"], each["reason"], each["message"]
    return "", "", ""


def phases(server: KubernetesServer, name: str = "job-a") -> list[str]:
    return [pod["status"]["phase"] for pod in server.pods(name)]


class TrainJobs:
    """The calls of `CustomObjectsApi` for TrainJobs of one namespace."""

    def __init__(self, connection: Any) -> None:
        self.api = kubernetes.CustomObjectsApi(connection)
        self.where = (GROUP, VERSION, "default", PLURAL)

    def create(self, content: Any) -> Any:
        return self.api.create_namespaced_custom_object(*self.where, content)

    def get(self, name: str = "job-a") -> Any:
        return self.api.get_namespaced_custom_object(*self.where, name)

    def list(self, **more: Any) -> Any:
        return self.api.list_namespaced_custom_object(*self.where, **more)

    def patch(self, content: Any, name: str = "job-a") -> Any:
        return self.api.patch_namespaced_custom_object(*self.where, name, content)

    def replace(self, content: Any, name: str = "job-a") -> Any:
        return self.api.replace_namespaced_custom_object(*self.where, name, content)

    def delete(self, name: str = "job-a", **more: Any) -> Any:
        return self.api.delete_namespaced_custom_object(*self.where, name, **more)


def refused(call: Callable[[], Any]) -> tuple[int, str, str]:
    """Status, reason and message of the refusal."""
    with pytest.raises(kubernetes.ApiException) as error:
        call()
    told = json.loads(error.value.body)
    assert (told["kind"], told["status"], told["code"]) == ("Status", "Failure", error.value.status)
    return error.value.status, told["reason"], told["message"]
