"""Whole runs whose candidate is an ensemble, and one that learns from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.common.champion import PromotionLog
from components.common.champion_model import package_folder
from infra.folder import FolderStore
from tests.infra.stock_client import stock_predict
from tests.small_project.command import evertrain
from tests.small_project.make_data import month, write_months
from training_core.package import Package
from training_core.tabular import TabularPreprocessor

pytestmark = [pytest.mark.smoke, pytest.mark.timeout(500)]

SEEDS = ["ensemble.of=seeds", "ensemble.members=2"]


def ran(project: Path, *overrides: str) -> dict[str, Any]:
    """Run the pipeline; return what it says."""
    words = [word for override in overrides for word in ("--set", override)]
    ended = evertrain("run", project, *words, "--json", timeout=400)
    assert ended.code == 0, ended.err
    found: dict[str, Any] = ended.json
    return found


def figures(project: Path, run: str, step: str) -> dict[str, Any]:
    record = json.loads((project / f".evertrain/store/runs/{run}/{step}.json").read_text())
    found: dict[str, Any] = record["figures"]
    return found


def test_an_ensemble_is_promoted_and_served_and_the_next_model_learns_from_it(
    project: Path, tmp_path: Path
) -> None:
    write_months(project / "data", 3)
    said = ran(project, *SEEDS)
    assert said["verdict"] == "promote"
    store = FolderStore(project / ".evertrain" / "store")
    ensemble = figures(project, said["run"], "select_checkpoint")["ensemble"]
    assert [member["what"] for member in ensemble["members"]] == ["seed 0", "seed 1"]
    assert figures(project, said["run"], "evaluate_model")["smoke"]["outcome"] == "pass"
    records = project / ".evertrain" / "store" / "runs" / said["run"]
    card = (records / "model_card.md").read_text()
    assert "the mean of 2 models" in card
    page = (records / "report.html").read_text()
    assert "seed 1" in page
    assert "Traceback" not in page
    # served by MLflow's stock client as it was judged
    (tmp_path / "far").mkdir()
    rows, database = month(4).head(64), f"sqlite:///{project}/.evertrain/mlflow.db"
    served = stock_predict(
        "models:/small@champion", rows, tmp_path / "far", MLFLOW_TRACKING_URI=database
    )
    champion = PromotionLog(store).entries()[-1]
    folder = package_folder(store, champion.package, tmp_path / "cache")
    expected = Package(folder, TabularPreprocessor).predict(rows)
    np.testing.assert_array_equal(served["prediction"], expected)
    # the next one learns from it, and is one model
    write_months(project / "data", 4)
    taught = ran(project, "training.distillation.teacher=champion")
    assert figures(project, taught["run"], "snapshot_data")["teacher"] == "champion 2"
    assert figures(project, taught["run"], "train_distributed")["teacher"] == "champion 2"
    assert figures(project, taught["run"], "select_checkpoint")["ensemble"] is None
    assert taught["verdict"] in ("promote", "hold", "inconclusive")
    assert [entry.version for entry in PromotionLog(store).entries()][:2] == ["1", "2"]


def test_the_model_is_averaged_with_the_champion_before_it(project: Path) -> None:
    write_months(project / "data", 3)
    said = ran(project, "ensemble.of=champions", "ensemble.members=3")
    ensemble = figures(project, said["run"], "select_checkpoint")["ensemble"]
    what = [member["what"] for member in ensemble["members"]]
    assert what == ["this run's model", "champion 1"]
    assert ensemble["left_out"] == ["champions asked for: 2, so far there are 1"]
    assert figures(project, said["run"], "evaluate_model")["smoke"]["outcome"] == "pass"
    page = (project / ".evertrain/store/runs" / said["run"] / "report.html").read_text()
    assert "Fewer members than asked" in page
