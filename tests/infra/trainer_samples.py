"""A TrainJob as the tests ask for it, and the way to the double of the cluster."""

from __future__ import annotations

from typing import Any

from infra.trainer.api import TrainerApi
from infra.trainer.jobs import TrainJobs
from infra.trainer.request import TrainJobRequest
from tests.cluster.kubernetes_server import KubernetesServer

NAME = "train-small-0123-1"


def request(**more: Any) -> TrainJobRequest:
    """Two nodes of three processes that ask for GPUs."""
    usual: dict[str, Any] = {
        "name": NAME, "identity": "one", "runtime": "torch-distributed",
        "image": "registry/evertrain@sha256:" + "a" * 64, "nodes": 2, "processes": 3,
        "command": ("python", "-m", "components.train_distributed.node", "s3://b/p", "jobs/k/0001"),
        "environment": {"EVERTRAIN_HOME": "/tmp/evertrain"},
        "requests": {"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "4"},
        "limits": {"memory": "8Gi", "nvidia.com/gpu": "4"},
        "labels": {"app.kubernetes.io/name": "evertrain", "evertrain/run-key": "0123"},
    }  # fmt: skip
    return TrainJobRequest(**{**usual, **more})


def jobs_of(server: KubernetesServer, token: str = "", *, patience: float = 20.0) -> TrainJobs:
    """The TrainJobs of a double's namespace `default`, for a token's account."""
    config = server.configuration(token)
    return TrainJobs(TrainerApi(namespace="default", patience=patience, config=config))
