"""Metrics against values worked out by hand, the tasks' own, and scikit-learn's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sklearn.metrics as skm
import torch
from baseline_samples import TASKS

from components.common.metrics import drawn, exact, families_of, measured, row_scores
from components.common.resampling import Draws
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
    means = measured("binary", TRUTH, probability)
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
    assert rows.keys() >= expected.keys()
    for name, values in expected.items():
        assert rows[name].shape == (50,)
        assert rows[name] == pytest.approx(values.double().numpy(), rel=1e-5, abs=1e-6), name
    means = measured(task.kind, truth, predictions)
    units = task.units(torch.from_numpy(truth))
    count = 50 if units is None else float(units.sum())
    for name, values in expected.items():
        assert means[name] == pytest.approx(float(values.double().sum()) / count, rel=1e-5)


def random_labels(rows: int = 3000) -> tuple[Any, Any]:
    random = np.random.default_rng(1)
    chance = random.beta(1, 3, rows)
    truth = (random.random(rows) < chance).astype(np.float32)
    return truth, np.round(np.clip(chance + random.normal(0, 0.1, rows), 0.01, 0.99), 2)  # ties


def test_those_of_yes_and_no_are_scikit_learns() -> None:
    truth, predictions = random_labels()
    found = measured("binary", truth, predictions)
    said = predictions >= 0.5
    assert found["auc"] == pytest.approx(skm.roc_auc_score(truth, predictions))
    assert found["average_precision"] == pytest.approx(
        skm.average_precision_score(truth, predictions)
    )
    assert found["f1"] == pytest.approx(skm.f1_score(truth, said))
    assert found["precision"] == pytest.approx(skm.precision_score(truth, said))
    assert found["recall"] == pytest.approx(skm.recall_score(truth, said))
    assert found["accuracy"] == pytest.approx(skm.accuracy_score(truth, said))
    assert found["log_loss"] == pytest.approx(skm.log_loss(truth, predictions))
    assert found["brier"] == pytest.approx(skm.brier_score_loss(truth, predictions))


def test_those_of_classes_are_scikit_learns() -> None:
    random = np.random.default_rng(2)
    truth = random.integers(0, 5, 800)
    predictions = random.dirichlet(np.ones(5), 800) * 0.7 + 0.3 * np.eye(5)[truth]
    found = measured("multiclass", truth, predictions)
    said = predictions.argmax(1)
    assert found["f1"] == pytest.approx(skm.f1_score(truth, said, average="macro"))
    assert found["log_loss"] == pytest.approx(skm.log_loss(truth, predictions))
    brier = ((predictions - np.eye(5)[truth]) ** 2).sum(1).mean()
    assert found["brier"] == pytest.approx(brier)


def test_those_of_numbers_are_scikit_learns() -> None:
    random = np.random.default_rng(3)
    truth = random.normal(1e6, 3.0, 500).astype(np.float32)  # far from 0: squares lose digits
    predictions = truth + random.normal(0.5, 2.0, 500)
    found = measured("regression", truth, predictions)
    assert found["r2"] == pytest.approx(skm.r2_score(truth, predictions))
    assert found["rmse"] == pytest.approx(skm.root_mean_squared_error(truth, predictions))
    for share in (10, 90):
        assert found[f"quantile_loss_{share}"] == pytest.approx(
            skm.mean_pinball_loss(truth, predictions, alpha=share / 100)
        )


def test_perplexity_is_that_of_tokens_and_padding_counts_for_nothing() -> None:
    truth = np.array([[1, PADDING], [0, 1]])
    predictions = np.full((2, 2, 2), 0.5)
    assert measured("sequence", truth, predictions)["perplexity"] == pytest.approx(2.0)


def test_an_auc_of_one_class_is_none() -> None:
    found = measured("binary", np.zeros(10, dtype=np.float32), np.linspace(0.1, 0.4, 10))
    assert "auc" not in found
    assert "log_loss" in found


def test_probabilities_that_mean_what_they_say_are_calibrated() -> None:
    random = np.random.default_rng(4)
    chance = random.beta(1, 3, 50_000)
    truth = (random.random(50_000) < chance).astype(np.float32)
    assert measured("binary", truth, chance)["calibration_error"] < 0.01
    assert measured("binary", truth, chance / 2)["calibration_error"] == pytest.approx(
        0.125, abs=0.01
    )


@pytest.mark.parametrize("metric", ["log_loss", "f1", "auc", "average_precision"])
def test_the_draws_are_those_of_the_rows_themselves(metric: str) -> None:
    """Against drawing rows one by one and asking scikit-learn: the same spread, the same point."""
    truth, predictions = random_labels(400)
    days = np.arange(400) // 20
    draws = Draws.of(days, resamples=300)
    values = drawn(families_of("binary", truth, predictions), draws)[metric]
    by_hand = []
    for weights in draws.weights[:100]:
        rows = np.concatenate(
            [np.tile(np.flatnonzero(draws.codes == c), int(w)) for c, w in enumerate(weights) if w]
        )
        by_hand.append(exact(families_of("binary", truth[rows], predictions[rows]))[metric])
    assert values[:100] == pytest.approx(np.array(by_hand), abs=2e-3)


def test_a_part_of_the_rows_has_metrics_of_its_own() -> None:
    truth, predictions = random_labels()
    rows = np.flatnonzero(np.arange(3000) % 3 == 0)
    some = exact(families_of("binary", truth, predictions), rows)
    alone = exact(families_of("binary", truth[rows], predictions[rows]))
    for name in ("log_loss", "auc", "average_precision", "f1"):
        assert some[name] == pytest.approx(alone[name])
