"""What MLflow hears of a training, and what it does not cost."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from components.common import figures
from components.common.figures import TrainPoint
from components.common.project import open_project
from components.train_distributed.tracker import Silent, Tracker, flat
from infra.tracking import connect
from training_core.outcome import Point, Rollback

ROOT = Path(__file__).parents[2]
SMALL = ROOT / "tests" / "small_project"
KEY = "0123456789abcdef"


@pytest.fixture
def uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database in a home folder of this test's own."""
    monkeypatch.setenv("EVERTRAIN_HOME", str(tmp_path))
    monkeypatch.setenv("EVERTRAIN_RUN_ID", "run 1")
    return f"sqlite:///{tmp_path}/mlflow.db"


def opened(uri: str, *overrides: str) -> Tracker:
    project = open_project(SMALL, overrides=list(overrides))
    tracker = Tracker.open(project, uri=uri, run_key=KEY, rank=0)
    assert isinstance(tracker, Tracker)
    return tracker


def the_run(uri: str) -> Any:
    client = connect(uri)
    number = client.get_experiment_by_name("small").experiment_id
    (run,) = client.search_runs([number])
    return run


def values(uri: str, name: str) -> list[tuple[int, float]]:
    found = connect(uri).get_metric_history(the_run(uri).info.run_id, name)
    return [(metric.step, metric.value) for metric in sorted(found, key=lambda m: m.timestamp)]


def test_a_training_is_one_run_with_its_settings_curve_evaluations_and_end(uri: str) -> None:
    tracker = opened(uri, "training.stopping.patience=3")
    tracker.point(Point(20, 0.5, 1e-3, 1.5, 41234.0, samples=512, mfu=0.25))
    tracker.evaluation(20, {"loss": 0.49, "brier": 0.2})
    tracker.point(Point(40, 0.25, 1e-3, 1.5, 41234.0, samples=1024))
    tracker.rollback(Rollback(step=60, to_step=40, reason="the loss is nan", lr_factor=0.5))
    assert tracker.close("FINISHED", reason="patience: 3 evaluations")
    run = the_run(uri)
    assert (run.info.status, run.info.run_name) == ("FINISHED", "small 01234567")
    assert values(uri, "loss") == [(20, 0.5), (40, 0.25)]
    assert values(uri, "samples") == [(20, 512), (40, 1024)]
    assert values(uri, "mfu") == [(20, 0.25)]
    assert values(uri, "validation_brier") == [(20, 0.2)]
    assert not {"step", "update_norm", "seconds_data"} & run.data.metrics.keys()
    assert run.data.params["training.stopping.patience"] == "3"
    assert run.data.params["training.optimiser.lr"]
    tags = run.data.tags
    assert tags["evertrain.run_key"] == KEY
    assert tags["evertrain.run"] == "run 1"
    assert tags["evertrain.stop_reason"] == "patience: 3 evaluations"
    assert tags["evertrain.rollback.60"] == "to step 40, learning rate × 0.5: the loss is nan"


def test_a_training_that_goes_on_goes_on_with_its_run(uri: str) -> None:
    first = opened(uri)
    first.point(Point(20, 0.5, 1e-3, 1.5, 41234.0))
    assert first.close("FAILED", reason="diverged")
    assert the_run(uri).info.status == "FAILED"
    second = opened(uri)
    second.point(Point(20, 0.5, 1e-3, 1.5, 40000.0))  # repeated after the checkpoint
    second.point(Point(40, 0.25, 1e-3, 1.5, 40000.0))
    assert second.close("FINISHED")
    assert values(uri, "loss") == [(20, 0.5), (20, 0.5), (40, 0.25)]
    assert the_run(uri).info.status == "FINISHED"


def test_other_ranks_tell_nothing(uri: str, tmp_path: Path) -> None:
    tracker = Tracker.open(open_project(SMALL), uri=uri, run_key=KEY, rank=1)
    assert isinstance(tracker, Silent)
    tracker.point(Point(20, 0.5, 1e-3, 1.5, 41234.0))
    tracker.evaluation(20, {"loss": 0.49})
    assert tracker.close("FINISHED")
    assert list(tmp_path.iterdir()) == []


QUICK = """
import sys
from pathlib import Path
from components.train_distributed.tracker import Tracker
from training_core.outcome import Point
tracker = Tracker(folder=Path(sys.argv[1]) / "spool", uri="sqlite:///" + sys.argv[1] + "/mlflow.db",
                  experiment="quick", run_key="key", name="n", parameters={"training": {"lr": 0.1}},
                  tags={})
for step in range(1, 1001):
    tracker.point(Point(step, 1 / step, 1e-3, 1.5, 41234.0))
assert "mlflow" not in sys.modules
assert tracker.close("FINISHED")
assert "mlflow" in sys.modules
"""


def test_a_short_training_meets_mlflow_only_when_it_is_over(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", QUICK, str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_each_figure_of_a_log_interval_and_of_a_rollback_is_in_the_record() -> None:
    point = Point(20, math.nan, 1e-3, 1.5, 4e4, mfu=0.25)
    seen = json.loads(TrainPoint(**asdict(point)).model_dump_json())
    assert seen == {**asdict(point), "loss": None}
    assert TrainPoint(**seen).model_dump() == seen
    rollback = asdict(Rollback(step=60, to_step=40, reason="the loss is nan", lr_factor=0.5))
    assert figures.Rollback(**rollback).model_dump() == rollback


def test_nested_settings_get_names_with_dots() -> None:
    assert flat({"a": {"b": 1, "c": {"d": [2]}}, "e": None}) == {"a.b": 1, "a.c.d": [2], "e": None}
