"""The whole pipeline in containers: killed at each step, then promoted, then challenged.

One project lives through all of it, in this order; each test looks at one stretch of its life.
"""

from __future__ import annotations

import json
import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.common.project import open_project
from components.common.records import STEPS
from components.common.run_record import RunRecord
from infra.image.engine import Docker
from pipelines.containers import Containers
from pipelines.local import run_locally
from tests.containers.registry import compressed_bytes
from tests.containers.watching import (
    Seen,
    run_in_containers,
    running_steps,
    started,
    until,
    watching,
)
from tests.small_project.command import Ended, evertrain, make_project
from tests.small_project.make_data import write_months

# Said by each step that imports the task: what its container is, seen from inside.
LOOK = """

import json, os, sys


def _look_around():
    status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines()
                  if ":\\t" in line)
    here = os.path.dirname(os.path.abspath(__file__))
    written = []
    for folder in ("/", "/app", "/venv", "/etc", "/home", here, os.path.join(here, "data")):
        try:
            open(os.path.join(folder, "probe"), "w").close()
            written.append(folder)
        except OSError:
            pass
    print("INSIDE " + json.dumps({
        "uid": os.getuid(), "gid": os.getgid(), "effective": status["CapEff"],
        "bounding": status["CapBnd"], "no_new_privileges": status["NoNewPrivs"],
        "network": sorted(os.listdir("/sys/class/net")), "written": written,
        "secret": os.environ.get("AWS_SECRET_ACCESS_KEY", ""),
    }), file=sys.stderr, flush=True)


if os.environ.get("EVERTRAIN_PARENT") == "stdin":  # not where the command itself imports the task
    _look_around()
"""
WITH_TASK = {"check_training", "train_baseline", "train_distributed", "evaluate_model"}


def store(project: Path) -> Path:
    return project / ".evertrain" / "store"


def record(project: Path, run: str, step: str) -> Any:
    return json.loads((store(project) / "runs" / run / f"{step}.json").read_text())


@dataclass
class Killed:
    """A run of which a step's container was killed, and what was started in it."""

    record: RunRecord
    seen: list[Seen]


@pytest.fixture(scope="module")
def killed(
    docker: Docker, reachable: None, pushed: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Killed]]:
    """The small project after so many runs, and by step the one in which its container was killed.

    Each step's first container is killed; so the next run has a step or two more to do. The
    report's is killed in the run that is promoted.
    """
    project = make_project(tmp_path_factory.mktemp("contained") / "project", 1, 2)
    opened, runs = open_project(project), dict[str, Killed]()
    while len(runs) < len(STEPS):
        chosen = set[str]()
        only_report_left = len(runs) == len(STEPS) - 1

        def kill(c: Seen, chosen: set[str] = chosen, report: bool = only_report_left) -> None:
            if c.step not in runs and (c.step != "report_run" or report):
                chosen.add(c.step)
                docker.run("kill", c.name)

        with watching(docker, kill) as seen:
            # Not by the command: importing torch anew each time would be a third of the time.
            record = run_locally(
                opened, data="", overrides=[], force=False,
                runner=Containers(opened, image=pushed),
            )  # fmt: skip
        assert chosen, "no step was killed, and yet there are some left"
        for step in chosen:
            runs[step] = Killed(record, seen)
    return project, runs


@pytest.mark.parametrize("step", STEPS[:-1])
def test_a_step_whose_container_fails_fails_the_run(killed: Any, step: str) -> None:
    project, runs = killed
    said, seen = runs[step].record, runs[step].seen
    assert (said.status, said.exit_code) == ("failed", 3)
    outcomes = {s.step: s.status for s in said.steps}
    assert outcomes[step] == "failed"
    assert outcomes["report_run"] == "done"
    # Nothing that takes what the step would have given was started.
    later = {container.step for container in seen} & set(STEPS[STEPS.index(step) + 1 :])
    siblings = {"check_training", "train_baseline", "train_distributed", "select_checkpoint"}
    assert later <= {"report_run"} | (siblings if step == "train_baseline" else {"train_baseline"})
    assert said.champion_after == ""
    found = record(project, said.run, step)
    assert found["reason"] == f"the container of {step} ended with 137 (SIGKILL)"
    assert found["exit_code"] == 3
    assert found["hint"].startswith("this machine may be short of memory")
    assert said.reasons[0].endswith("ended with 137 (SIGKILL)")


def test_finished_steps_are_not_run_again_in_the_runs_after(killed: Any) -> None:
    _, runs = killed
    for step in STEPS[3:]:
        assert "validate_data" not in {container.step for container in runs[step].seen}


def test_a_report_that_is_killed_is_written_all_the_same(killed: Any) -> None:
    project, runs = killed
    said = runs["report_run"].record
    assert (said.exit_code, said.status, said.champion_after) == (0, "finished", "1")
    assert (store(project) / "runs" / said.run / "report.html").is_file()


def test_after_all_that_it_is_promoted_once(killed: Any) -> None:
    project, _ = killed
    promotions = evertrain("history", project, "--json").json["promotions"]
    assert [p["version"] for p in promotions if p["action"] == "promote"] == ["1"]


def test_the_same_in_processes_is_nothing_new(killed: Any) -> None:
    project, runs = killed
    again = evertrain("run", project, "--json")
    assert again.code == 0, again.err
    assert again.json["status"] == "nothing_new"
    assert runs["report_run"].record.run in again.json["reasons"][0]


@pytest.fixture(scope="module")
def challenged(
    docker: Docker, pushed: str, killed: Any
) -> tuple[Path, Ended, Ended, list[Seen], str]:
    """March arrives: a run that is killed, one that is interrupted in training, one to the end."""
    project, _ = killed
    write_months(project / "data", 3)
    with (project / "task.py").open("a") as file:
        file.write(LOOK)
    words = ("--set", "training.processes=2", "--set", "training.epochs=6")
    before = set((store(project) / "checkpoints").glob("*/*"))
    os.environ["AWS_SECRET_ACCESS_KEY"] = "not-for-steps-without-a-network"
    try:
        with watching(docker) as seen:
            with started(docker, project, pushed, *words) as process:
                until(lambda: any(c.step == "check_training" and c.config for c in seen))
                process.kill()
                process.wait()
                until(lambda: not running_steps(docker), seconds=10)
            orphans = docker.run("ps", "--all", "--format", "{{.Names}}")
            with started(docker, project, pushed, *words) as process:
                until(lambda: set((store(project) / "checkpoints").glob("*/*")) - before)
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=200)
                interrupted = Ended(process.returncode, out, err)
            assert running_steps(docker) == []
            ended = run_in_containers(docker, project, pushed, *words)
    finally:
        del os.environ["AWS_SECRET_ACCESS_KEY"]
    return project, interrupted, ended, seen, orphans


def test_containers_end_with_the_command_that_started_them(docker: Docker, challenged: Any) -> None:
    _, _, _, _, orphans = challenged
    assert "check-training" in orphans, "it was not left behind, so nothing had to remove it"
    assert "evertrain-" not in docker.run("ps", "--all", "--format", "{{.Names}}")


def test_ctrl_c_stops_the_step_in_good_order(challenged: Any) -> None:
    project, interrupted, ended, _, _ = challenged
    assert interrupted.code == 130
    assert "run the same command again" in interrupted.err
    runs = sorted(path.name for path in (store(project) / "runs").iterdir())
    stopped = record(project, runs[-2], "train_distributed")
    assert stopped["status"] == "interrupted"
    resumed = record(project, ended.json["run"], "train_distributed")
    assert resumed["figures"]["resumed_from"] > 0, "it began anew"


def test_a_challenger_is_promoted_over_the_champion(challenged: Any) -> None:
    project, _, ended, _, _ = challenged
    assert ended.code == 0, ended.err
    said = ended.json
    assert (said["verdict"], said["champion_before"], said["champion_after"]) == (
        "promote", "1", "2"
    )  # fmt: skip
    assert all(s["status"] == "done" for s in said["steps"])
    assert record(project, said["run"], "train_distributed")["figures"]["processes"] == 2


@pytest.mark.parametrize("step", STEPS)
def test_each_step_ran_confined(challenged: Any, step: str) -> None:
    project, _, _, seen, _ = challenged
    configs = [c.config for c in seen if c.step == step and c.config]
    assert configs
    for config in configs:
        host = config["HostConfig"]
        assert config["Config"]["User"] == "10001:10001"
        assert host["ReadonlyRootfs"] is True
        assert (host["CapDrop"], host["CapAdd"], host["Privileged"]) == (["ALL"], None, False)
        assert host["SecurityOpt"] == ["no-new-privileges:true"]
        assert host["NetworkMode"] == "none"
        assert list(host["Tmpfs"]) == ["/tmp"]
        writable = {m["Destination"] for m in config["Mounts"] if m["RW"]}
        readable = {m["Destination"] for m in config["Mounts"] if not m["RW"]}
        assert writable == {str(project / ".evertrain")}
        assert readable == {str(project), str(project / "data")}
        assert not any("not-for-steps" in variable for variable in config["Config"]["Env"])


def test_steps_find_themselves_confined_when_they_look(challenged: Any) -> None:
    project, _, _, seen, _ = challenged
    # In which of the three runs a step came to its end is a matter of milliseconds.
    logs = (project / ".evertrain" / "logs").glob("*.log")
    lines = [line for path in logs for line in re.findall(r"INSIDE (\{.*\})", path.read_text())]
    assert {container.step for container in seen} >= WITH_TASK
    assert len(lines) >= len(WITH_TASK)
    for line in lines:
        found = json.loads(line)
        assert (found["uid"], found["gid"]) == (10001, 10001)
        assert (found["effective"], found["bounding"]) == ("0" * 16, "0" * 16)
        assert (found["no_new_privileges"], found["network"]) == ("1", ["lo"])
        assert (found["written"], found["secret"]) == ([], "")


def test_all_that_steps_wrote_is_the_steps_users(challenged: Any) -> None:
    project, _, _, _, _ = challenged
    owners = {path.stat().st_uid for path in (store(project) / "runs").rglob("*.json")}
    assert owners <= {0, 10001}
    assert (project / "task.py").stat().st_uid == os.getuid()


def test_the_compiled_pipeline_names_the_image_that_ran(
    docker: Docker, pushed: str, challenged: Any
) -> None:
    project, _, _, seen, _ = challenged
    compiled = yaml.safe_load_all((project / ".evertrain" / "pipeline.yaml").read_text())
    executors = next(iter(compiled))["deploymentSpec"]["executors"].values()
    (image,) = {executor["container"]["image"] for executor in executors}
    assert image == docker.run("image", "inspect", "--format", "{{.Id}}", pushed).strip()
    assert {container.config["Image"] for container in seen if container.config} == {image}


def test_what_is_pushed_is_compiled_and_fetched_by_digest(
    docker: Docker, image: str, pushed: str, fresh_project: Path, tmp_path: Path
) -> None:
    assert re.fullmatch(r"127\.0\.0\.1:\d+/evertrain@sha256:[0-9a-f]{64}", pushed)
    file = tmp_path / "pipeline.yaml"
    ended = evertrain(
        "compile", fresh_project, "-o", file, "--json", more={"EVERTRAIN_IMAGE": pushed}
    )
    assert ended.json["image"] == pushed
    executors = next(iter(yaml.safe_load_all(file.read_text())))["deploymentSpec"]["executors"]
    assert {executor["container"]["image"] for executor in executors.values()} == {pushed}
    docker.run("image", "rm", pushed)
    assert not docker.has(pushed)
    docker.run("pull", "--quiet", pushed)
    same = [docker.run("image", "inspect", "--format", "{{.Id}}", n) for n in (image, pushed)]
    assert same[0] == same[1]


def test_what_is_pulled_is_not_larger_than_it_was(pushed: str) -> None:
    sizes = compressed_bytes(pushed)
    assert len(sizes) == 5
    assert sum(sizes) < 560e6
