"""What no run could end well with is refused before one is started, or in its first steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from components.common.project import open_project
from components.common.runnable import runnable_task
from components.train_baseline.step import refuse_absent
from components.validate_data import step as validate_data
from tests.small_kinds.make_kind import make_kind
from tests.small_project.command import evertrain
from training_core.errors import ConfigurationError

KINDS = ("multiclass", "multilabel", "regression", "sequence")


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_of_each_kind_can_be_run(tmp_path: Path, kind: str) -> None:
    assert runnable_task(open_project(make_kind(tmp_path, kind))).kind == kind


def test_a_metric_that_the_kind_does_not_have_is_refused_before_anything_is_read(
    tmp_path: Path,
) -> None:
    project = make_kind(tmp_path, "regression")
    ended = evertrain("run", project, "--set", "decision.metric=log_loss")
    assert ended.code == 2
    assert "is a regression task, which has no metric 'log_loss' (decision.metric)" in ended.err
    assert "squared_error" in ended.err
    assert not (project / ".evertrain").exists()
    with pytest.raises(ConfigurationError, match="metric 'auc'"):
        runnable_task(open_project(project, overrides=["decision.floors={auc: 0.6}"]))


@pytest.mark.parametrize("kind", ["multilabel", "regression", "sequence"])
def test_what_has_no_classes_cannot_be_divided_within_them(tmp_path: Path, kind: str) -> None:
    asked = ["split={by: stratified, holdout: 0.2, validation: 0.1}"]
    project = open_project(make_kind(tmp_path, kind), overrides=asked)
    with pytest.raises(ConfigurationError, match=f"is a {kind} task, and split.by") as refused:
        runnable_task(project)
    assert "split.by: hash" in refused.value.hint


def test_a_run_that_no_command_started_is_stopped_by_its_first_step_that_reads_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = make_kind(tmp_path, "regression")
    monkeypatch.setenv("EVERTRAIN_RUN_ID", "r")
    unused: Any = None
    asked = ["decision.metric=log_loss"]
    with pytest.raises(SystemExit) as ended:
        validate_data.run(str(project), "", asked, "key", "digest", "", "", unused)
    assert ended.value.code == 2
    assert "has no metric 'log_loss'" in capsys.readouterr().err


def test_a_rule_that_must_be_beaten_has_to_be_there(fresh_project: Path) -> None:
    file = fresh_project / "task.py"
    file.write_text(file.read_text().replace("def rule", "def no_rule"))
    asked = open_project(fresh_project, overrides=["decision.must_beat=[rule]"])
    with pytest.raises(ConfigurationError, match="has no rule, and decision"):
        runnable_task(asked)
    runnable_task(open_project(fresh_project))


def test_a_rule_that_must_be_beaten_and_is_there_is_fine(fresh_project: Path) -> None:
    asked = open_project(fresh_project, overrides=["decision.must_beat=[rule]"])
    assert type(runnable_task(asked)).__name__ == "SmallTask"


def test_a_baseline_that_must_be_beaten_and_was_not_trained_ends_the_run(
    fresh_project: Path,
) -> None:
    settings = open_project(fresh_project, overrides=["decision.must_beat=[prior, rule]"]).settings
    refuse_absent({"trees": "baselines.trees is false"}, settings)
    with pytest.raises(ConfigurationError, match="it has nothing to say") as refused:
        refuse_absent({"rule": "it has nothing to say of these rows"}, settings)
    assert "must_beat" in refused.value.hint
