"""Every pod that Kubeflow makes of the compiled pipeline: admitted by a restricted namespace."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from components.common.records import STEPS
from components.common.settings import ProjectSettings
from pipelines.compiling import compile_pipeline
from pipelines.placing import placing
from tests.cluster.installations import cluster_of
from tests.cluster.kubeflow_pods import pods_of
from tests.cluster.network import connects
from tests.cluster.schemas import check_mounts, check_pod_spec
from tests.cluster.secret_search import secrets_in, values_in

IMAGE = "registry.example.org/flights@sha256:" + "ab" * 32
SECRETS = {
    name: {"secret": "evertrain-s3"} for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
}
CLUSTERS: dict[str, dict[str, Any]] = {
    "nothing but the image": {"image": IMAGE},
    "as the local overlay is": {
        "image": IMAGE,
        "secrets": SECRETS,
        "environment": {"AWS_ENDPOINT_URL": "http://s3:8333", "MLFLOW_TRACKING_URI": "http://mlflow:5000"},
    },
    "everything": {
        "image": IMAGE,
        "pull_secrets": ["registry"],
        "secrets": SECRETS,
        "environment": {"LOG_LEVEL": "info"},
        "pods": {
            "default": {"cpu": "500m", "memory": "1.5Gi", "scratch": "20Gi", "timeout": 3600},
            "train_distributed": {
                "cpu": "8", "cpu_limit": "16", "memory": "64Gi", "shared_memory": "16Gi",
                "gpus": 4, "gpu_type": "amd.com/gpu", "node_selector": {"pool": "gpu"},
                "tolerations": [
                    {"key": "spot", "value": "yes", "effect": "NoSchedule"},
                    {"operator": "Exists", "effect": "NoExecute", "seconds": 30},
                ],
            },
        },
    },
}  # fmt: skip


BARE = "without places"


@cache  # compiling takes a second or two
def compiled(name: str) -> str:
    settings = ProjectSettings.model_validate(
        {
            "name": "flights",
            "task": {"path": "task:Flights"},
            "data": {"source": "s3://bucket/flights", "row_key": ["id"], "time_column": "time"},
            "cluster": CLUSTERS.get(name, {}),
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pipeline.yaml"
        compile_pipeline(file, place=None if name == BARE else placing(settings))
        return file.read_text()


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_restricted_namespace_admits_every_steps_pod(name: str) -> None:
    pods = pods_of(compiled(name))
    assert set(pods) == set(STEPS)
    problems = {
        step: found
        for step, pod in pods.items()
        if (found := [*check_pod_spec(pod.spec), *check_mounts(pod.spec)])
    }
    assert not problems


def test_settings_reach_the_pod() -> None:
    pod = pods_of(compiled("everything"))["train_distributed"].spec
    (main,) = pod["containers"]
    assert main["image"] == IMAGE
    assert main["resources"]["limits"] == {"cpu": "16", "memory": "64Gi", "amd.com/gpu": "4"}
    assert {"name": "shared-memory", "mountPath": "/dev/shm"} in main["volumeMounts"]
    assert pod["nodeSelector"] == {"pool": "gpu"}
    assert pod["tolerations"][1] == {
        "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30,
    }  # fmt: skip


@pytest.mark.parametrize("name", CLUSTERS)
def test_no_compiled_pipeline_holds_a_secret(name: str) -> None:
    text = compiled(name)
    assert not secrets_in(text)
    for pod in pods_of(text).values():
        assert not list(values_in(pod.spec))


def test_the_local_overlays_policies_know_the_steps_pods() -> None:
    documents = cluster_of("local").documents
    labels = {
        pod.labels["app.kubernetes.io/component"]: pod.labels
        for _, pod in cluster_of("local").pods()
    }
    for step, pod in pods_of(compiled("as the local overlay is")).items():
        assert connects(documents, pod.labels, labels["s3"], 8333), step
        assert connects(documents, pod.labels, labels["mlflow"], 5000), step
        assert not connects(documents, pod.labels, labels["postgres"], 5432), step


def test_a_pipeline_without_places_would_be_refused() -> None:
    for pod in pods_of(compiled(BARE)).values():
        found = " ".join(check_pod_spec(pod.spec))
        assert "runAsNonRoot" in found
        assert "no limit of memory" in found


def test_a_setting_that_is_not_known_is_not_passed_over() -> None:
    text = compiled("everything").replace("nodeSelector:", "nodeSelectors:")
    with pytest.raises(KeyError, match="nodeSelectors"):
        pods_of(text)
