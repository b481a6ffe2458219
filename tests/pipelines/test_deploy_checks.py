"""`evertrain deploy`: what would fail in the cluster is refused before anything goes there."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import kfp_home as kfp_home
from tests.cluster.conftest import kfp_server as kfp_server
from tests.cluster.kfp_server import KfpServer
from tests.pipelines.deploy_case import DEPLOYABLE, NIGHTLY, Case, new_case
from tests.small_project.command import command, environment

CLUSTER = DEPLOYABLE["cluster"]


@pytest.fixture
def case(tmp_path: Path, kfp_server: KfpServer, monkeypatch: pytest.MonkeyPatch) -> Case:
    return new_case(tmp_path, kfp_server, monkeypatch)


@pytest.mark.parametrize(
    ("change", "words", "hint"),
    [
        ({"cluster": {}}, "cluster.image is empty", "docker push"),
        ({"cluster": {"image": "small:1"}}, "names no digest", "--allow-tag"),
        ({"store": None}, "which no pod would share", "store: s3://"),
        ({"store": "/mnt/store"}, "which no pod would share", "store: s3://"),
        ({"tracking": None}, "no MLflow server is named", "tracking.uri"),
        ({"tracking": {"uri": "sqlite:///x.db"}}, "in the pod itself", "tracking.uri"),
        (
            {"alerts": {"channels": [{"type": "slack", "url_env": "SLACK_URL"}]}},
            "alerts need SLACK_URL",
            "cluster.secrets.SLACK_URL: {secret: NAME}",
        ),
        (
            {"cluster": {**CLUSTER, "environment": {"AWS_SECRET_ACCESS_KEY": "hunter2"}}},
            "looks like a secret",
            "kubectl create secret",
        ),
        (
            {"cluster": {**CLUSTER, "environment": {"MLFLOW": "http://me:hunter2@mlflow"}}},
            "looks like a secret",
            "cluster.secrets.MLFLOW",
        ),
        (
            {"schedules": [{"name": "nightly", "cron": "0 2 * * *"}]},
            "has five fields, and Kubeflow reads seconds first",
            "write `0 0 2 * * *`: at 02:00 UTC every day",
        ),
        (
            {"schedules": [{**NIGHTLY, "settings": ["training.epoch=5"]}]},
            "unknown key 'training.epoch'",
            "did you mean 'epochs'?",
        ),
    ],
)
def test_what_would_fail_in_the_cluster_is_refused_before(
    case: Case, change: dict[str, Any], words: str, hint: str
) -> None:
    case.write(change)
    ended = case.deploy()
    assert ended.code == 2
    assert words in ended.err
    assert hint in ended.err
    assert "hunter2" not in ended.err + ended.out, "no secret is repeated"
    assert case.server.requests == []


def test_data_in_a_folder_is_refused(case: Case) -> None:
    case.write({"data": {**case.settings["data"], "source": "data"}})
    ended = case.deploy()
    assert ended.code == 2
    assert "is a folder of this machine, which no pod sees" in ended.err


def test_everything_that_is_wrong_is_said_at_once(case: Case) -> None:
    case.write({"store": None, "cluster": {}, "schedules": [{"name": "n", "cron": "* *"}]})
    ended = case.deploy()
    assert "cannot be deployed, for 3 reasons" in ended.err
    for number in (1, 2, 3):
        assert ended.err.count(f"  {number}. ") == 2, "each with its hint"


def test_a_tag_is_taken_with_a_warning_where_it_is_asked_for(case: Case) -> None:
    case.write({"cluster": {"image": "small:1"}})
    ended = case.deploy("--allow-tag")
    assert ended.code == 0, ended.err
    assert "warning: the image 'small:1' is named by a tag" in ended.err


def test_an_endpoint_that_the_pods_do_not_know_is_warned_of(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://minio:9000")
    assert "warning: AWS_ENDPOINT_URL" in case.deploy("--dry-run").err
    case.write({"cluster": {**CLUSTER, "environment": {"AWS_ENDPOINT_URL": "http://minio:9000"}}})
    assert "AWS_ENDPOINT_URL" not in case.deploy("--dry-run").err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--remove", "--run"), "--remove starts no run"),
        (("--force",), "--set and --force are for the run that --run starts"),
        (("--set", "training.epochs=2"), "--set and --force are for the run"),
        (("--run", "--set", "training.epoch=2"), "unknown key 'training.epoch'"),
    ],
)
def test_words_that_do_not_go_together_are_refused(
    case: Case, words: tuple[str, ...], said: str
) -> None:
    ended = case.deploy(*words)
    assert ended.code == 2
    assert said in ended.err
    assert case.server.requests == []


@pytest.mark.parametrize(("answer", "done"), [("yes\n", True), ("no\n", False), ("\n", False)])
def test_on_a_terminal_it_asks_and_does_what_is_answered(
    case: Case, answer: str, done: bool
) -> None:
    terminal, theirs = os.openpty()
    os.write(terminal, answer.encode())
    process = subprocess.run(
        command("deploy", case.folder, "--host", case.server.url),
        stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, text=True, timeout=120, cwd="/",
        env={**environment(), "NO_COLOR": "1", "TERM": "dumb"}, check=False,
    )  # fmt: skip
    os.close(theirs)
    said = b""
    with contextlib.suppress(OSError):  # the other end is closed: all was read
        while chunk := os.read(terminal, 1 << 16):
            said += chunk
    os.close(terminal)
    assert process.returncode == 0, said
    assert b"Do this? yes or no [no]" in said
    assert (b"nothing was changed" in said) != done
    assert bool(case.server.recurring_runs) == done
    assert "create" in process.stdout
