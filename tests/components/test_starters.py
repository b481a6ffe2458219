"""Who starts the nodes of a training, and what it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from components.common.project import Project, open_project
from components.train_distributed.by_trainer import ByTrainer, image_of, job_name
from components.train_distributed.starters import ByHand, starter_for
from infra.trainer.jobs import TrainJobs
from tests.cluster.conftest import kubernetes_server as kubernetes_server
from tests.cluster.kubernetes_server import KubernetesServer
from tests.components.test_node import shared
from tests.infra.trainer_samples import jobs_of
from tests.small_project.command import evertrain
from training_core.errors import ConfigurationError

SMALL = Path(__file__).parents[1] / "small_project"
KEY = "0123456789abcdef0123456789abcdef"
IMAGE = "registry/evertrain@sha256:" + "a" * 64


def _say(words: str) -> None:
    """Tell nobody."""


def _opened(*overrides: str) -> Project:
    return open_project(SMALL, overrides=["training.nodes=2", *overrides])


def _by_trainer(jobs: TrainJobs, *overrides: str, run: str = "run-1") -> ByTrainer:
    project = _opened(f"cluster.image={IMAGE}", *overrides)
    return ByTrainer(project, KEY, run, jobs=jobs, say=_say)


def test_outside_a_cluster_nobody_starts_nodes_unless_it_is_said_who(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ConfigurationError, match=r"training\.nodes is 2") as raised:
        starter_for(_opened(), KEY, "run", say=_say)
    assert "--set training.nodes=1" in raised.value.hint
    by_hand = starter_for(_opened("cluster.train_job.start=hand"), KEY, "run", say=_say)
    assert isinstance(by_hand, ByHand)


def test_a_run_on_nodes_that_nobody_starts_is_refused_before_it_begins(
    fresh_project: Path,
) -> None:
    ended = evertrain("run", fresh_project, "--set", "training.nodes=2")
    assert ended.code == 2
    assert "this is no pod of a cluster" in ended.err
    assert not (fresh_project / ".evertrain" / "store").exists()


def test_by_hand_the_command_is_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    attempt = shared(tmp_path)
    ByHand(_opened(), KEY).start(attempt)
    said = capsys.readouterr().err
    command = f"-m components.train_distributed.node {attempt.store.uri} jobs/key/0001 --node"
    assert command in said
    assert "NUMBER is 0 to 1" in said


def test_without_an_image_no_job_is_made(
    kubernetes_server: KubernetesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVERTRAIN_IMAGE", raising=False)
    with pytest.raises(ConfigurationError, match="which image"):
        image_of(_opened().settings.cluster)
    monkeypatch.setenv("EVERTRAIN_IMAGE", IMAGE)
    assert image_of(_opened().settings.cluster) == IMAGE


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("small", "train-small-01234567-3"),
        ("big_model--of_the_year_2025", "train-big-model-of-the-yea-01234567-3"),
        ("9-", "train-9-01234567-3"),
    ],
)
def test_a_job_has_a_name_that_a_cluster_takes(name: str, expected: str) -> None:
    found = job_name(_opened(f"name={name!r}"), KEY, 3)
    assert found == expected
    assert len(found) <= 40


def test_an_attempt_is_the_same_for_another_run_and_another_for_other_settings(
    kubernetes_server: KubernetesServer,
) -> None:
    jobs = jobs_of(kubernetes_server)
    here = _by_trainer(jobs).identity(1)
    assert _by_trainer(jobs, run="run-2").identity(1) == here
    assert _by_trainer(jobs, "watch.poll=5").identity(1) == here
    assert _by_trainer(jobs).identity(2) != here
    for setting in (
        "cluster.pods.train_distributed.memory=8Gi", "cluster.train_job.queue=team",
        "cluster.environment.NCCL_DEBUG=INFO", "training.nodes=3",
    ):  # fmt: skip
        assert _by_trainer(jobs, setting).identity(1) != here, setting


def test_nodes_get_what_the_settings_say_and_nothing_secret(
    kubernetes_server: KubernetesServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://s3:8333")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mlflow:5000")
    pods: dict[str, Any] = {
        "cpu": "4", "memory": "8Gi", "gpus": 2, "gpu_type": "amd.com/gpu", "timeout": 600,
        "tolerations": [{"key": "spot", "effect": "NoExecute", "operator": "Exists",
                         "seconds": 30}],
    }  # fmt: skip
    starter = _by_trainer(
        jobs_of(kubernetes_server), f"cluster.pods.train_distributed={pods}",
        "cluster.secrets={AWS_SECRET_ACCESS_KEY: {secret: s3}}", "cluster.train_job.queue=team",
        "cluster.environment={NCCL_DEBUG: WARN}", "training.processes=2",
    )  # fmt: skip
    starter.start(shared(tmp_path))
    starter.close()
    name = job_name(_opened(), KEY, 1)
    job = kubernetes_server.trainjob(name)
    trainer = job["spec"]["trainer"]
    env = {each["name"]: each for each in trainer["env"]}
    assert env["NCCL_DEBUG"]["value"] == "WARN"
    assert env["AWS_ENDPOINT_URL_S3"]["value"] == "http://s3:8333"
    assert env["MLFLOW_TRACKING_URI"]["value"] == "http://mlflow:5000"
    reference = {"name": "s3", "key": "AWS_SECRET_ACCESS_KEY"}
    assert env["AWS_SECRET_ACCESS_KEY"]["valueFrom"] == {"secretKeyRef": reference}
    assert "hidden" not in str(job)
    assert trainer["resourcesPerNode"] == {
        "requests": {"cpu": "4", "memory": "8Gi", "amd.com/gpu": "2"},
        "limits": {"memory": "8Gi", "amd.com/gpu": "2"},
    }
    assert (trainer["numNodes"], trainer["numProcPerNode"]) == (2, 2)
    assert trainer["command"][1:4] == [
        "-m",
        "components.train_distributed.node",
        str(tmp_path / "store"),
    ]
    assert job["spec"]["activeDeadlineSeconds"] == 600
    labels = job["metadata"]["labels"]
    assert labels["kueue.x-k8s.io/queue-name"] == "team"
    assert labels["evertrain/run-key"] == KEY
    (pod, _) = kubernetes_server.pods(name)
    assert pod["spec"]["tolerations"] == [
        {"key": "spot", "effect": "NoExecute", "operator": "Exists", "tolerationSeconds": 30}
    ]
