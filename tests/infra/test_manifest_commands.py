"""Our own commands that the manifests' pods run: the command line takes them as they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from pipelines.cli import app
from tests.cluster.installations import INSTALLATIONS, cluster_of
from tests.cluster.pod_security import containers
from tests.cluster.references import Cluster

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def variables(cluster: Cluster, container: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for source in container.get("envFrom", []):
        if "configMapRef" in source:
            found |= cluster.of("ConfigMap")[source["configMapRef"]["name"]]["data"]
    return found | {each["name"]: each["value"] for each in container["env"] if "value" in each}


def commands(installation: str) -> list[tuple[str, list[str], dict[str, str]]]:
    """Whose, what and with which variables, of each container that runs our command line."""
    cluster = cluster_of(installation)
    found = []
    for owner, pod in cluster.pods():
        for _, container in containers(pod.spec):
            words = [*container.get("command", []), *container.get("args", [])]
            if words[:1] == ["evertrain"]:
                given = variables(cluster, {"env": [], **container})
                for name, value in given.items():
                    words = [word.replace(f"$({name})", value) for word in words]
                assert "$(" not in "".join(words), owner
                found.append((owner, words, given))
    return found


@pytest.mark.parametrize("installation", INSTALLATIONS)
def test_the_command_line_takes_what_the_pods_run(installation: str) -> None:
    ran = commands(installation)
    assert ran
    for owner, (_, name, *words), _ in ran:
        context = COMMANDS[name].make_context(name, list(words))
        assert context.params["host"].startswith("http://ml-pipeline.kubeflow"), owner
        assert context.params["data"].startswith("s3://") or not context.params["data"], owner
        once = owner.startswith(("CronJob", "Sensor"))
        assert context.params["once"] is once, owner
        assert context.params["listen"] == ("" if once else "0.0.0.0:8080"), owner


@pytest.mark.parametrize("installation", INSTALLATIONS)
def test_the_project_is_one_that_the_image_has(installation: str) -> None:
    for owner, words, _ in commands(installation):
        assert (Path(__file__).parents[2] / Path(words[2]).relative_to("/app")).is_dir(), owner


@pytest.mark.parametrize("installation", ["local", "production"])
def test_the_watcher_is_told_where_everything_is(installation: str) -> None:
    ((_, _, given),) = commands(installation)
    assert given["EVERTRAIN_DATA"].startswith("s3://")
    assert given["EVERTRAIN_STORE"].startswith("s3://")
    assert set(given) >= {"MLFLOW_TRACKING_URI", "AWS_DEFAULT_REGION"}
