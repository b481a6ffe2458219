"""The examples through the whole pipeline, in a small form: a first model, then a challenger."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.examples.example_projects import DIGITS, TEXT
from tests.small_project.command import environment, evertrain

QUICK = [
    "checks.seconds=5",  # those that train are tried by the tests of the checks
    "checks.rows=512",
    "baselines.trees=false",
    "baselines.input_independent_steps=10",
    "decision.retraining_noise=0.01",
    "decision.resamples=300",
]


def land(example: Path, data: Path, parts: str) -> None:
    words = [sys.executable, example / "prepare.py", "--data", data, "--parts", parts]
    subprocess.run(words, check=True, capture_output=True, env=environment())


def ran(example: Path, folder: Path, *overrides: str) -> dict[str, Any]:
    words = [word for each in (*QUICK, *overrides) for word in ("--set", each)]
    ended = evertrain(
        "run", example, "--data", folder / "data", "--json", *words,
        timeout=800, more={"EVERTRAIN_HOME": str(folder / "home")},
    )  # fmt: skip
    assert ended.code == 0, ended.err
    record: dict[str, Any] = ended.json
    return record


def metrics_of(record: dict[str, Any], folder: Path) -> dict[str, dict[str, float]]:
    file = folder / "home" / "store" / "runs" / record["run"] / "evaluate_model.json"
    found: dict[str, dict[str, float]] = json.loads(file.read_text())["figures"]["metrics"]
    return found


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.timeout(900)
def test_digits_are_learned_and_a_challenger_is_compared(tmp_path: Path) -> None:
    # A margin for a training of a few seconds: the second model has to be judged, not to be good.
    quick = ("training.epochs=8", "decision.margin=1.0")
    land(DIGITS, tmp_path / "data", "1-10")
    first = ran(DIGITS, tmp_path, *quick)
    assert (first["verdict"], first["champion_after"]) == ("promote", "1")
    metrics = metrics_of(first, tmp_path)
    assert metrics["challenger"]["error"] < 0.2
    assert metrics["challenger"]["log_loss"] < metrics["linear"]["log_loss"]

    land(DIGITS, tmp_path / "data", "11-14")
    second = ran(DIGITS, tmp_path, *quick)
    assert second["verdict"] in ("promote", "inconclusive", "hold")
    assert "champion" in metrics_of(second, tmp_path)


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.timeout(900)
def test_text_is_learned_and_a_challenger_is_compared(tmp_path: Path) -> None:
    quick = (
        "task.options.length=32", "task.options.width=32", "task.options.blocks=1",
        "training.epochs=4", "training.batch_size=16", "training.optimiser.lr=0.006",
        "decision.margin=1.0", "select.average=0",
    )  # fmt: skip
    land(TEXT, tmp_path / "data", "3,5")
    first = ran(TEXT, tmp_path, *quick)
    assert (first["verdict"], first["champion_after"]) == ("promote", "1")
    metrics = metrics_of(first, tmp_path)
    assert metrics["challenger"]["log_loss"] < metrics["prior"]["log_loss"] - 0.2

    land(TEXT, tmp_path / "data", "7")
    second = ran(TEXT, tmp_path, *quick)
    assert second["verdict"] in ("promote", "inconclusive", "hold")
    assert "champion" in metrics_of(second, tmp_path)
