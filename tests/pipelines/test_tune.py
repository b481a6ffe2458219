"""`evertrain tune` as people run it: what it finds, what a kill leaves, what it leaves alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.small_project.command import environment, evertrain, make_project
from tests.small_project.data_steps import run_data_steps

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
    return sorted(str(each) for each in folder.glob("tune-*/**/*") if each.is_file())


@pytest.fixture(scope="module")
def _divided(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_project(tmp_path_factory.mktemp("tune") / "divided", 1, 2)
    assert run_data_steps(folder)["split_data"].status == "done"
    return folder


@pytest.fixture
def divided_project(_divided: Path, tmp_path: Path) -> Path:
    """The small project after its first three steps."""
    return Path(shutil.copytree(_divided, tmp_path / "divided"))


LR = "training.optimiser.lr"
TOO_SMALL = {LR: {"low": 1e-5, "high": 1e-3, "log": True}}


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.timeout(700)
def test_a_space_that_is_too_small_is_noticed_and_the_winner_is_a_patch(
    divided_project: Path,
) -> None:
    project = divided_project
    searching(
        project, TOO_SMALL, trials=10, parallel=2, pruning="none", quasi_random=1.0, repeats=2
    )
    before = (project / "evertrain.yaml").read_text()
    ended = evertrain(
        "tune", project, "--json", "--set", "training.optimiser.lr=0.00002", timeout=400
    )
    assert ended.code == 0, ended.err
    said = ended.json
    assert [t["number"] for t in said["trials"]] == list(range(10))
    assert {t["ended"] for t in said["trials"]} == {"finished"}
    (rate,) = said["dimensions"]
    assert rate["boundary"] == "high"
    assert "widen it up to 0.01" in rate["advice"]
    assert said["comparison"]["better"] is True
    assert said["comparison"]["holdout"]["question"] >= 1, "it says that it looked"
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
    assert parent["status"] == "FINISHED"
    assert {r["tags"]["mlflow.parentRunId"] for r in children} == {parent["id"]}
    assert sorted(int(r["tags"]["evertrain.trial"]) for r in children) == list(range(10))

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
        "facts = [(r.info.run_id, r.info.run_name, r.info.status, r.data.tags) for r in found]\n"
        "print(json.dumps([dict(zip(('id', 'name', 'status', 'tags'), f)) for f in facts]))"
    )
    uri = f"sqlite:///{project / '.evertrain' / 'mlflow.db'}"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, uri], capture_output=True, text=True,
        check=True, env=environment(),
    )  # fmt: skip
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_without_a_run_there_is_nothing_to_train_on(fresh_project: Path) -> None:
    ended = evertrain("tune", fresh_project)
    assert ended.code == 2
    assert "no run of small has train, validation and holdout" in ended.err
    assert "hint: evertrain run" in ended.err


@pytest.mark.smoke
@pytest.mark.slow
def test_what_is_wrong_is_said_before_or_after_few_trials(divided_project: Path) -> None:
    project = divided_project
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
