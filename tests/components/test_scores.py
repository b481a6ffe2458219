"""Scores of probabilities, against values worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from baseline_samples import TASKS

from components.common.scores import mean_scores, row_scores
from training_core.task import PADDING, Task

TRUTH = np.array([1, 0, 1, 0], dtype=np.float32)


def test_each_row_is_scored_by_itself() -> None:
    scores = row_scores(TRUTH, np.array([0.8, 0.8, 0.5, 0.1]))
    assert scores["log_loss"] == pytest.approx(
        [-math.log(0.8), -math.log(0.2), -math.log(0.5), -math.log(0.9)]
    )
    assert scores["brier"] == pytest.approx([0.04, 0.64, 0.25, 0.01])
    assert list(scores["error"]) == [0, 1, 0, 0]


def test_a_prediction_that_is_certain_and_wrong_costs_much_but_not_everything() -> None:
    loss = row_scores(TRUTH, np.array([0.0, 1.0, 1.0, 0.0]))["log_loss"]
    assert loss[:2] == pytest.approx([-math.log(1e-7)] * 2)
    assert loss[2:] == pytest.approx([0, 0], abs=1e-6)


def test_the_means_are_those_of_the_rows_and_auc_is_that_of_pairs() -> None:
    probability = np.array([0.8, 0.8, 0.5, 0.1])
    means = mean_scores(TRUTH, probability)
    rows = row_scores(TRUTH, probability)
    assert means["log_loss"] == pytest.approx(rows["log_loss"].mean())
    assert means["auc"] == pytest.approx((0.5 + 1 + 0 + 1) / 4)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_nothing_is_decided_on_predictions_that_are_no_numbers(bad: float) -> None:
    with pytest.raises(ValueError, match="1 of 4 predictions are not finite"):
        row_scores(TRUTH, np.array([0.8, bad, 0.5, 0.1]))


def outputs_and_truth(kind: str) -> tuple[torch.Tensor, Any]:
    """Random outputs and labels, as training_core/task.py has them for a kind of task."""
    torch.manual_seed(0)
    random = np.random.default_rng(0)
    if kind == "multiclass":
        return torch.randn(50, 4), random.integers(0, 4, 50)
    if kind == "multilabel":
        return torch.randn(50, 3), random.integers(0, 2, (50, 3)).astype(np.float32)
    if kind == "sequence":
        tokens = random.integers(0, 5, (50, 6))
        return torch.randn(50, 6, 5), np.where(random.random((50, 6)) < 0.3, PADDING, tokens)
    if kind == "regression":
        return torch.randn(50) * 100, random.normal(5000, 100, 50).astype(np.float32)
    return torch.randn(50), random.integers(0, 2, 50).astype(np.float32)


@pytest.mark.parametrize("build", TASKS)
def test_each_kind_of_task_is_scored_as_it_scores_itself(build: type[Task]) -> None:
    task = build()
    outputs, truth = outputs_and_truth(task.kind)
    predictions = task.predict(outputs).double().numpy()
    rows = row_scores(truth, predictions, kind=task.kind)
    expected = task.metrics(outputs, torch.from_numpy(truth))
    assert rows.keys() == expected.keys()
    for name, values in expected.items():
        assert rows[name].shape == (50,)
        assert rows[name] == pytest.approx(values.double().numpy(), rel=1e-5, abs=1e-6), name
    means = mean_scores(truth, predictions, kind=task.kind)
    units = task.units(torch.from_numpy(truth))
    count = 50 if units is None else float(units.sum())
    for name, values in expected.items():
        assert means[name] == pytest.approx(float(values.double().sum()) / count, rel=1e-5)
