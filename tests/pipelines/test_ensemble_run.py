"""Whole runs whose candidate is an ensemble, and one that learns from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.common.champion import PromotionLog
from infra.folder import FolderStore
from tests.small_project.command import evertrain
from tests.small_project.make_data import month, write_months

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
    project: Path,
) -> None:
    import mlflow

    write_months(project / "data", 3)
    said = ran(project, *SEEDS)
    assert said["verdict"] == "promote"
    store = FolderStore(project / ".evertrain" / "store")
    ensemble = figures(project, said["run"], "select_checkpoint")["ensemble"]
    assert [member["what"] for member in ensemble["members"]] == ["seed 0", "seed 1"]
    assert figures(project, said["run"], "evaluate_model")["smoke"]["outcome"] == "pass"
    folder = store.uri and Path(store.uri) / "runs" / said["run"]
    card = (folder / "model_card.md").read_text()
    assert "the mean of 2 models" in card
    page = (folder / "report.html").read_text()
    assert "seed 1" in page
    assert "Traceback" not in page
    # served by MLflow's stock client as it was judged
    mlflow.set_tracking_uri(f"sqlite:///{project}/.evertrain/mlflow.db")
    model = mlflow.pyfunc.load_model("models:/small@champion")
    frame = month(4).head(20)
    first, again = (model.predict(frame)["prediction"].to_numpy() for _ in range(2))
    np.testing.assert_array_equal(first, again)
    # learns from it, and is one model
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
