"""Containers that fail at once, run out of memory, or cannot be run: never a success."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from components.common.layout import project_store
from components.common.project import open_project
from components.common.records import StepRecord
from infra.image.engine import Docker
from pipelines.containers import Containers
from tests.containers.watching import run_in_containers
from tests.small_project.command import make_project

RUN = "20250101T000000Z-0001"
STEP = "snapshot_data"
NAMED = ["--executor_input", "{}", "--function_to_execute", STEP]


@contextmanager
def kfps_handler(project: Path, image: str, memory: str = "") -> Iterator[Any]:
    """What kfp makes a task of, while a run's containers are at work."""
    from kfp.local import docker_task_handler

    opened = open_project(project)
    containers = Containers(opened, image=image, memory=memory)
    store, log = project_store(opened), io.StringIO()
    with containers.at_work(run=RUN, store=store, log=log) as runner:
        yield lambda *command: docker_task_handler.DockerTaskHandler(
            image=image, full_command=[*command, *NAMED], pipeline_root="/", runner=runner,
            env_vars={},
        ).run()  # fmt: skip


def recorded(project: Path) -> StepRecord:
    content = project_store(open_project(project)).get(f"runs/{RUN}/{STEP}.json")
    return StepRecord.model_validate_json(content)


def test_a_container_that_fails_at_once_is_never_a_success(
    reachable: None, image: str, fresh_project: Path
) -> None:
    with kfps_handler(fresh_project, image) as run:
        found = {run("sh", "-c", "exit 3").name for _ in range(20)}
    assert found == {"FAILURE"}
    assert recorded(fresh_project).exit_code == 3


def test_kfp_has_its_own_handler_back_after_a_run(
    reachable: None, image: str, fresh_project: Path
) -> None:
    from kfp.local import docker_task_handler

    theirs = docker_task_handler.DockerTaskHandler
    with kfps_handler(fresh_project, image):
        assert docker_task_handler.DockerTaskHandler is not theirs
    assert docker_task_handler.DockerTaskHandler is theirs
    assert theirs.__module__ == "kfp.local.docker_task_handler"


def test_a_container_that_says_success_before_its_step_did_is_none(
    reachable: None, image: str, fresh_project: Path
) -> None:
    with kfps_handler(fresh_project, image) as run:
        assert run("true").name == "FAILURE"
    assert "ended with 0, but the step had not finished" in recorded(fresh_project).reason


def test_exit_codes_of_containers_are_those_of_steps(
    reachable: None, image: str, fresh_project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {1: 1, 2: 2, 3: 3, 127: 2, 42: 3}
    with kfps_handler(fresh_project, image) as run:
        for code, meant in asked.items():
            record = project_store(open_project(fresh_project))
            record.delete(f"runs/{RUN}/{STEP}.json")
            run("sh", "-c", f"echo last words; exit {code}")
            assert recorded(fresh_project).exit_code == meant
    assert "last words" in capsys.readouterr().out


def test_one_that_is_out_of_memory_says_so(
    reachable: None, image: str, fresh_project: Path
) -> None:
    hungry = "x = b'1' * (1 << 30)"
    with kfps_handler(fresh_project, image, memory="64m") as run:
        assert run("python3", "-c", hungry).name == "FAILURE"
    record = recorded(fresh_project)
    assert (record.status, record.exit_code) == ("failed", 3)
    assert record.reason.endswith("was killed: out of memory")
    assert "training.batch_size" in record.hint


def test_a_program_that_is_not_there_says_so(
    reachable: None, image: str, fresh_project: Path
) -> None:
    with kfps_handler(fresh_project, image) as run:
        assert run("no-such-program").name == "FAILURE"
    record = recorded(fresh_project)
    assert record.exit_code == 3
    assert "no-such-program" in record.reason


def test_no_container_is_left_whatever_happened(docker: Docker, image: str) -> None:
    assert "evertrain-" not in docker.run("ps", "--all", "--format", "{{.Names}}")


def test_an_image_that_is_not_there_is_said_before_anything_starts(
    docker: Docker, tmp_path: Path
) -> None:
    project = make_project(tmp_path / "project", 1)
    ended = run_in_containers(docker, project, "nobody/evertrain:none")
    assert ended.code == 3
    assert "there is no image 'nobody/evertrain:none' on this machine" in ended.err
    assert "docker pull nobody/evertrain:none" in ended.err
    assert not (project / ".evertrain" / "store" / "runs").exists()


def test_an_image_that_goes_away_during_a_run_fails_the_step(
    reachable: None, docker: Docker, image: str, fresh_project: Path, tmp_path: Path
) -> None:
    tag = "evertrain-under-test:gone"
    (tmp_path / "Dockerfile").write_text(f"FROM {image}\nLABEL gone=1\n")
    docker.run("build", "--tag", tag, tmp_path, more={"DOCKER_BUILDKIT": "1"})
    with kfps_handler(fresh_project, tag) as run:
        docker.run("image", "rm", tag)
        assert run("true").name == "FAILURE"
    record = recorded(fresh_project)
    assert record.exit_code == 3
    assert "could not be run" in record.reason
    assert record.hint
