"""The step tune: in the pipeline only where it is asked for, and what follows takes its winner."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from components.common.project import open_project
from components.common.provenance import provenance
from components.common.records import STEPS
from pipelines.compiling import compile_pipeline
from tests.pipelines.compiled import overrides_of, tasks_of
from tests.small_project.command import evertrain, make_project


def test_the_step_is_between_check_and_training_and_all_behind_it_take_its_settings(
    tmp_path: Path,
) -> None:
    compile_pipeline(tmp_path / "pipeline.yaml", tuned=True)
    tasks = tasks_of(tmp_path / "pipeline.yaml")
    assert tasks["tune"]["dependentTasks"] == ["check-training", "split-data"]
    assert "run_key" in tasks["tune"]["inputs"]["parameters"], "or caching does not see the data"
    behind = ("train_distributed", "select_checkpoint", "evaluate_model", "promote_model")
    for name in behind:
        assert overrides_of(tasks[name]) == "tune", name
    for name in {"validate_data", "split_data", "check_training", "train_baseline", "tune"}:
        assert "tune" not in overrides_of(tasks[name]), name


def test_without_it_the_pipeline_has_no_such_task(tmp_path: Path) -> None:
    compile_pipeline(tmp_path / "pipeline.yaml")
    assert "tune" not in tasks_of(tmp_path / "pipeline.yaml")
    assert "components.tune" not in (tmp_path / "pipeline.yaml").read_text()
    assert "tune" not in STEPS


def test_a_search_is_part_of_a_runs_key_only_where_its_winner_is_trained_with(
    fresh_project: Path,
) -> None:
    def digest(*overrides: str) -> str:
        return provenance(open_project(fresh_project, overrides=list(overrides))).config_digest

    plain = digest()
    assert digest("tune.trials=3") == plain
    on = digest("tune.in_pipeline=true")
    assert on != plain
    assert digest("tune.in_pipeline=true", "tune.trials=3") != on


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.timeout(700)
def test_a_run_trains_with_what_its_search_found_and_says_so(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", 1, 2)
    file = project / "evertrain.yaml"
    content = yaml.safe_load(file.read_text())
    content["tune"] = {
        "in_pipeline": True, "trials": 2, "repeats": 4, "quasi_random": 1.0, "pruning": "none",
        "parameters": {"training.optimiser.lr": {"low": 0.08, "high": 0.2, "log": True}},
    }  # fmt: skip
    # The project's 0.02 lets it learn slowly: any point of this space is better.
    file.write_text(yaml.safe_dump(content, sort_keys=False))
    ended = evertrain("run", project, "--json", timeout=600)
    assert ended.code == 0, ended.err
    said = ended.json
    records = project / ".evertrain/store/runs" / said["run"]
    searched = json.loads((records / "tune.json").read_text())
    assert searched["status"] == "done"
    (taken,) = searched["figures"]["overrides"]
    rate = float(taken.partition("=")[2])
    assert 0.08 <= rate <= 0.2
    trained = json.loads((records / "train_distributed.json").read_text())["figures"]
    assert max(point["lr"] for point in trained["curve"]) == pytest.approx(rate, rel=0.2)
    assert [step["step"] for step in said["steps"]].index("tune") == 5
    page = (records / "report.html").read_text()
    assert f"Trained with what was found: {taken}" in page
    assert searched["figures"]["comparison"]["holdout"] is None, "evaluate_model asks it"
