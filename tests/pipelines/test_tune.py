"""`evertrain tune` as people run it: a search that is killed, what it finds, what it leaves alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.small_project.command import command, environment, evertrain

_KILL = pytest.mark.slow


def searching(project: Path, parameters: dict[str, Any], **more: Any) -> Path:
    """A project with a search of these parameters in its file."""
    file = project / "evertrain.yaml"
    content = yaml.safe_load(file.read_text())
    content["tune"] = {"parameters": parameters, **more}
    file.write_text(yaml.safe_dump(content, sort_keys=False))
    return project


def study_of(project: Path) -> Path:
    (found,) = (project / ".evertrain/store/tune").iterdir()
    return found


def checkpoints(project: Path) -> list[str]:
    folder = project / ".evertrain/store/checkpoints"
    return sorted(each.name for each in folder.iterdir() if each.name.startswith("tune-"))


LR = "training.optimiser.lr"
TOO_SMALL = {LR: {"low": 1e-5, "high": 1e-3, "log": True}}


@pytest.mark.smoke
@pytest.mark.slow
def test_a_space_that_is_too_small_is_noticed_and_the_winner_is_a_patch(project: Path) -> None:
    searching(
        project, TOO_SMALL, trials=12, parallel=2, pruning="none", quasi_random=1.0, repeats=2
    )
    before = (project / "evertrain.yaml").read_text()
    ended = evertrain(
        "tune", project, "--json", "--set", "training.optimiser.lr=0.00002", timeout=400
    )
    assert ended.code == 0, ended.err
    said = ended.json
    assert [t["number"] for t in said["trials"]] == list(range(12))
    assert {t["ended"] for t in said["trials"]} == {"finished"}
    (rate,) = said["dimensions"]
    assert rate["boundary"] == "high"
    assert "widen it up to 0.01" in rate["advice"]
    assert said["comparison"]["better"] is True
    assert said["comparison"]["holdout"]["question"] >= 1, (
        "the holdout was looked at, and it says so"
    )
    (change,) = said["changes"]
    assert change["path"] == LR
    assert change["gained"]["mean"] > 0
    assert "was 2e-05; gained +" in said["patch"]
    assert (project / "evertrain.yaml").read_text() == before, "nothing is written unasked"
    assert checkpoints(project) == [], "its checkpoints are gone"

    page = Path(said["page"]).read_text()
    assert "widen it up to 0.01" in page
    assert "<script" not in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert len(page) < 300_000

    runs = mlflow_runs(project)
    children = [r for r in runs if r["tags"].get("evertrain.trial")]
    (parent,) = [r for r in runs if r["name"].startswith("small tune")]
    assert {r["tags"]["mlflow.parentRunId"] for r in children} == {parent["id"]}
    assert sorted(int(r["tags"]["evertrain.trial"]) for r in children) == list(range(12))

    journal = sorted((study_of(project) / "journal").iterdir())
    again = evertrain(
        "tune", project, "--apply", "--set", "training.optimiser.lr=0.00002", timeout=100
    )
    assert again.code == 0, again.err
    assert "said again" in again.err
    assert sorted((study_of(project) / "journal").iterdir()) == journal, "nothing is trained again"
    written = yaml.safe_load((project / "evertrain.yaml").read_text())
    assert written["training"]["optimiser"]["lr"] == change["new"]


def mlflow_runs(project: Path) -> list[dict[str, Any]]:
    program = (
        "import json, sys\nfrom mlflow import MlflowClient\n"
        "client = MlflowClient(tracking_uri=sys.argv[1])\n"
        "ids = [e.experiment_id for e in client.search_experiments()]\n"
        "found = client.search_runs(ids, max_results=500)\n"
        "print(json.dumps([{'id': r.info.run_id, 'name': r.info.run_name, 'tags': r.data.tags}"
        " for r in found]))"
    )
    uri = f"sqlite:///{project / '.evertrain' / 'mlflow.db'}"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, uri], capture_output=True, text=True,
        check=True, env=environment(),
    )  # fmt: skip
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


# Long enough that a kill comes while a trial trains; the pruning would follow the others' times.
_WORDS = (
    "--no-holdout", "--json", "--set", "training.epochs=40", "--set", "tune.pruning=none",
    "--set", "tune.repeats=2", "--set", "training.checkpoints.every=20",
)  # fmt: skip


def entries(project: Path) -> int:
    folder = project / ".evertrain/store/tune"
    return len(list(folder.glob("*/journal/*.json"))) if folder.exists() else 0


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    place = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(each) for each in place.read_text().split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def kill_after(project: Path, *, more: int) -> None:
    """Start the search, kill -9 it once it has written so many entries more, and see to its end."""
    until = entries(project) + more
    with subprocess.Popen(
        command("tune", project, *_WORDS, "--trials", "4"),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(), cwd="/", text=True,
    ) as process:  # fmt: skip
        while entries(project) < until:
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.005)
        workers = workers_of(process)
        os.kill(process.pid, signal.SIGKILL)
    limit = time.monotonic() + 30
    while any(alive(each) for each in workers):
        assert time.monotonic() < limit, "its trials go on without it"
        time.sleep(0.05)


@pytest.fixture
def twin(project: Path, tmp_path: Path) -> Iterator[Path]:
    """A second project like the first, for a search that nobody disturbs."""
    import shutil

    yield Path(shutil.copytree(project, tmp_path / "twin" / "project"))


@pytest.mark.slow
@pytest.mark.smoke
def test_killed_at_any_moment_it_finds_what_an_undisturbed_search_finds(
    project: Path, twin: Path
) -> None:
    for more in (7, 4, 9, 11):  # begun; asked; between evaluations; later
        kill_after(project, more=more)
    found, calm = (
        evertrain("tune", each, *_WORDS, "--trials", "4", timeout=300) for each in (project, twin)
    )
    assert (found.code, calm.code) == (0, 0), found.err + calm.err

    def facts(said: Any) -> list[Any]:
        return [
            (t["number"], t["sampler"], t["values"], t["ended"], t["value"], t["evaluations"])
            for t in said["trials"]
        ]

    assert facts(found.json) == facts(calm.json)
    assert len(facts(calm.json)) == 4
    assert found.json["overrides"] == calm.json["overrides"]


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_done_and_two_searches_at_once_are_refused(project: Path) -> None:
    with subprocess.Popen(
        command("tune", project, *_WORDS, "--trials", "9"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), cwd="/", text=True,
    ) as process:  # fmt: skip
        while entries(project) < 12:
            assert process.poll() is None
            time.sleep(0.01)
        other = evertrain("tune", project, *_WORDS, "--trials", "9")
        assert other.code == 3
        assert "under way on this machine already" in other.err
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "it goes on from there" in err
    assert any(checkpoints(project)), "the trial that was stopped has saved"


def test_without_a_run_there_is_nothing_to_train_on(fresh_project: Path) -> None:
    ended = evertrain("tune", fresh_project)
    assert ended.code == 2
    assert "no run of small has divided its data" in ended.err
    assert "hint: evertrain run" in ended.err


@pytest.mark.slow
def test_what_is_wrong_is_said_before_or_after_few_trials(project: Path) -> None:
    ended = evertrain("tune", project, "--set", "tune.metric=los", "--trials", "2")
    assert (ended.code, "is no metric of the task" in ended.err) == (2, True), ended.err
    assert "its metrics are:" in ended.err
    ended = evertrain("tune", project, "--set", "training.nodes=2")
    assert (ended.code, "trials train on one machine" in ended.err) == (2, True), ended.err


def test_nothing_that_does_not_tune_imports_optuna() -> None:
    program = (
        "import sys, pipelines.cli, pipelines.continuous_training, components.tune.component\n"
        "import components.common.settings, components.train_distributed.job\n"
        "import components.train_distributed.step, components.report_run.step\n"
        "import components.evaluate_model.step, components.tune.step, components.tune.space\n"
        "print('optuna' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True,
        check=True, env=environment(),
    )  # fmt: skip
    assert done.stdout.split() == ["False"]
