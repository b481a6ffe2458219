"""What no run could end well with is refused before one is started, or in its first steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from components.common.project import Project, open_project
from components.common.runnable import runnable_task
from components.train_baseline.step import refuse_absent
from components.validate_data import step as validate_data
from tests.small_project.command import evertrain
from training_core.errors import ConfigurationError

KINDS = {
    "multiclass": "MulticlassTask", "multilabel": "MultilabelTask",
    "regression": "RegressionTask", "sequence": "SequenceTask",
}  # fmt: skip


def of_kind(project: Path, kind: str) -> Project:
    """The small project, its task of another kind."""
    file = project / "task.py"
    code = file.read_text().replace("BinaryTask, Preprocessor", f"{KINDS[kind]}, Preprocessor")
    file.write_text(code.replace("SmallTask(BinaryTask)", f"SmallTask({KINDS[kind]})"))
    if kind == "sequence":
        file.write_text(file.read_text() + "\n    target = None\n")
    return open_project(project)


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_of_another_kind_is_refused_with_the_steps_that_cannot_take_it(
    fresh_project: Path, kind: str
) -> None:
    with pytest.raises(ConfigurationError, match="take binary tasks only") as refused:
        runnable_task(of_kind(fresh_project, kind))
    for words in (f"is a {kind} task", "task:SmallTask", "split_data", "validate_data"):
        assert words in refused.value.what
    assert f"evertrain check {fresh_project}" in refused.value.hint


def test_the_command_refuses_it_before_anything_is_read(fresh_project: Path) -> None:
    of_kind(fresh_project, "regression")
    ended = evertrain("run", fresh_project)
    assert ended.code == 2
    assert "is a regression task" in ended.err
    assert not (fresh_project / ".evertrain").exists()


def test_a_run_that_no_command_started_is_stopped_by_its_first_step_that_reads_the_task(
    fresh_project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    of_kind(fresh_project, "regression")
    monkeypatch.setenv("EVERTRAIN_RUN_ID", "r")
    unused: Any = None
    with pytest.raises(SystemExit) as ended:
        validate_data.run(str(fresh_project), "", [], "key", "digest", "", "", unused)
    assert ended.value.code == 2
    assert "is a regression task" in capsys.readouterr().err


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
