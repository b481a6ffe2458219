"""What the pods of the compiled pipeline get: held against a golden file, and rule by rule.

After a change that is meant:

    EVERTRAIN_GOLDEN=write python -m pytest tests/pipelines/test_placing.py
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.common.records import STEPS
from components.common.settings import ProjectSettings
from pipelines.compiling import compile_pipeline
from pipelines.placing import placing

GOLDEN = Path(__file__).parent / "golden" / "placed.yaml"
DIGEST = "sha256:" + "ab" * 32
IMAGE = f"registry.example.org/team/flights@{DIGEST}"
CLUSTER: dict[str, Any] = {
    "image": IMAGE,
    "pull_secrets": ["registry"],
    "environment": {"MLFLOW_TRACKING_URI": "http://mlflow:5000"},
    "secrets": {
        "AWS_SECRET_ACCESS_KEY": {"secret": "s3", "key": "secret-key"},
        "SLACK_URL": {"secret": "alerts"},
    },
    "pods": {
        "default": {"cpu": "1", "memory": "1.5Gi", "scratch": "20Gi", "timeout": 3600},
        "train_distributed": {
            "cpu": "500m", "cpu_limit": "8", "memory": "64Gi", "shared_memory": "16Gi",
            "gpus": 4, "gpu_type": "amd.com/gpu", "node_selector": {"pool": "gpu"}, "retries": 5,
            "timeout": 0,
            "tolerations": [
                {"key": "spot", "value": "yes", "effect": "NoSchedule"},
                {"operator": "Exists", "effect": "NoExecute", "seconds": 30},
            ],
        },
        "report_run": {"retries": 0},
    },
}  # fmt: skip


def settings_of(cluster: dict[str, Any], **more: Any) -> ProjectSettings:
    return ProjectSettings.model_validate(
        {
            "name": "flights",
            "task": {"path": "task:Flights"},
            "data": {"source": "s3://bucket/flights", "row_key": ["id"], "time_column": "time"},
            "cluster": cluster,
            **more,
        }
    )


Documents = list[dict[str, Any]]


@pytest.fixture(scope="module")
def compile_with(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., Documents]:
    """Compile the pipeline for some `cluster`."""

    def compile_(cluster: dict[str, Any], **more: Any) -> Documents:
        file = tmp_path_factory.mktemp("placed") / "pipeline.yaml"
        compile_pipeline(file, place=placing(settings_of(cluster, **more)))
        return list(yaml.safe_load_all(file.read_text()))

    return compile_


@pytest.fixture(scope="module")
def placed(compile_with: Callable[..., Documents]) -> Documents:
    alerts = {"channels": [{"type": "slack", "url_env": "SLACK_URL"}]}
    return compile_with(CLUSTER, alerts=alerts)


def pods(documents: Documents) -> dict[str, dict[str, Any]]:
    """What Kubernetes is told of each step's pod."""
    found = documents[1]["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    return {name.removeprefix("exec-").replace("-", "_"): pod for name, pod in found.items()}


def containers(documents: Documents) -> dict[str, dict[str, Any]]:
    found = documents[0]["deploymentSpec"]["executors"]
    return {
        name.removeprefix("exec-").replace("-", "_"): executor["container"]
        for name, executor in found.items()
    }


def retries(documents: Documents) -> dict[str, dict[str, Any]]:
    components = documents[0]["components"]
    dags = [documents[0]["root"]["dag"], *(c["dag"] for c in components.values() if "dag" in c)]
    return {
        name.replace("-", "_"): task["retryPolicy"]
        for dag in dags
        for name, task in dag["tasks"].items()
        if "retryPolicy" in task
    }


def environment(container: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container["env"]}


def secrets(pod: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {
        key["envVar"]: (each["secretName"], key["secretKey"])
        for each in pod.get("secretAsEnv", [])
        for key in each["keyToEnv"]
    }


def test_the_pods_are_those_that_were_agreed(placed: Documents) -> None:
    said = {
        step: {
            "image": containers(placed)[step]["image"],
            "env": containers(placed)[step]["env"],
            "resources": containers(placed)[step].get("resources"),
            "retry": retries(placed).get(step),
            "pod": pods(placed)[step],
        }
        for step in STEPS
    }
    if os.environ.get("EVERTRAIN_GOLDEN") == "write":
        GOLDEN.write_text(yaml.safe_dump(said, sort_keys=True, width=100))
    assert said == yaml.safe_load(GOLDEN.read_text()), (
        "the pods changed; if that is meant, write the golden file again with "
        "EVERTRAIN_GOLDEN=write python -m pytest tests/pipelines/test_placing.py"
    )


def test_every_step_runs_the_image_by_its_digest_and_knows_it(placed: Documents) -> None:
    assert set(containers(placed)) == set(STEPS)
    for container in containers(placed).values():
        assert container["image"] == IMAGE
        assert environment(container)["EVERTRAIN_IMAGE_DIGEST"] == DIGEST


def test_memory_is_promised_and_cpu_is_not_throttled(placed: Documents) -> None:
    resources = containers(placed)["split_data"]["resources"]
    assert resources["resourceMemoryRequest"] == resources["resourceMemoryLimit"]
    assert resources["resourceMemoryLimit"] == str(1536 * 2**20), "kfp knows no fraction"
    assert resources["resourceCpuRequest"] == "1"
    assert "resourceCpuLimit" not in resources


def test_only_the_training_gets_accelerators_and_shared_memory(placed: Documents) -> None:
    training = containers(placed)["train_distributed"]["resources"]["accelerator"]
    assert (training["resourceType"], training["resourceCount"]) == ("amd.com/gpu", "4")
    mounts = {
        each["mountPath"]: each for each in pods(placed)["train_distributed"]["emptyDirMounts"]
    }
    assert mounts["/dev/shm"]["medium"] == "Memory"
    assert mounts["/dev/shm"]["sizeLimit"] == "16Gi"
    assert mounts["/tmp"]["sizeLimit"] == "20Gi"
    for step in set(STEPS) - {"train_distributed"}:
        assert "accelerator" not in containers(placed)[step]["resources"], step
        assert [each["mountPath"] for each in pods(placed)[step]["emptyDirMounts"]] == ["/tmp"]


def test_only_report_run_is_given_the_secrets_of_alerts(placed: Documents) -> None:
    for step, pod in pods(placed).items():
        given = {"AWS_SECRET_ACCESS_KEY": ("s3", "secret-key")}
        if step == "report_run":
            given["SLACK_URL"] = ("alerts", "SLACK_URL")
        assert secrets(pod) == given, step
    assert "SLACK_URL" not in str(containers(placed)), "no secret is a plain variable"


def test_every_pod_is_one_that_restricted_namespaces_take(placed: Documents) -> None:
    for step, pod in pods(placed).items():
        context = pod["securityContext"]
        assert (context["runAsNonRoot"], context["runAsUser"]) == (True, "10001"), step
        labels = pod["podMetadata"]["labels"]
        assert (labels["evertrain/project"], labels["evertrain/step"]) == ("flights", step)
        for value in labels.values():
            assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", value), value


def test_a_long_step_that_loses_its_node_is_started_again(placed: Documents) -> None:
    """Argo counts backoffMaxDuration from the first attempt's start: an hour is too short."""
    policies = retries(placed)
    assert set(policies) == set(STEPS) - {"report_run"}
    assert policies["train_distributed"]["maxRetryCount"] == 5
    for policy in policies.values():
        assert int(policy["backoffMaxDuration"].removesuffix("s")) >= 7 * 24 * 3600
        assert policy["backoffDuration"] == "30s"


def test_a_timeout_can_be_taken_back_for_one_step(placed: Documents) -> None:
    assert pods(placed)["split_data"]["activeDeadlineSeconds"] == "3600"
    assert "activeDeadlineSeconds" not in pods(placed)["train_distributed"]


def test_without_settings_the_pods_still_are_not_root(
    compile_with: Callable[..., Documents],
) -> None:
    documents = compile_with({})
    for step, pod in pods(documents).items():
        assert pod["securityContext"]["runAsNonRoot"] is True, step
        assert "secretAsEnv" not in pod
    assert "EVERTRAIN_IMAGE_DIGEST" not in str(documents), "a tag is no digest"


def test_the_order_of_settings_changes_nothing(compile_with: Callable[..., Documents]) -> None:
    """Else a deploy would upload the same pipeline again."""
    turned = {name: CLUSTER[name] for name in reversed(CLUSTER)}
    turned["secrets"] = dict(reversed(CLUSTER["secrets"].items()))
    assert compile_with(turned) == compile_with(CLUSTER)


def test_a_name_too_long_for_a_label_is_cut(compile_with: Callable[..., Documents]) -> None:
    documents = compile_with({}, name="a" * 62 + "-b")
    assert pods(documents)["split_data"]["podMetadata"]["labels"]["evertrain/project"] == "a" * 62


def test_a_step_whose_nodes_are_pods_of_their_own_holds_no_accelerator(
    compile_with: Callable[..., Documents],
) -> None:
    training = {"nodes": 2, "processes": 4, "batch_size": 1024}
    documents = compile_with(CLUSTER, training=training)
    resources = containers(documents)["train_distributed"]["resources"]
    assert "accelerator" not in resources
    assert resources["resourceMemoryLimit"] == "1Gi"
    mounts = pods(documents)["train_distributed"]["emptyDirMounts"]
    assert [each["mountPath"] for each in mounts] == ["/tmp"]
    assert retries(documents)["train_distributed"]["maxRetryCount"] == 5
