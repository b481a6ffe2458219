"""Scores of probabilities, against values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from components.common.scores import mean_scores, row_scores

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
