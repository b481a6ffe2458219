"""Probabilities that were rounded are told from those of a network that is sure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch

from training_core.checks.machinery.predictions import coarse, out_of_range

OUTPUTS = np.random.default_rng(0).normal(0, 2, 96)
CLASSES = np.random.default_rng(1).normal(0, 2, (96, 3))


def _sigmoid(outputs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """As a network gives it: in single precision."""
    return np.asarray(torch.from_numpy(outputs).float().sigmoid().double())


def _softmax(outputs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    powers = np.exp(outputs)
    return np.asarray(powers / powers.sum(1, keepdims=True))


def test_probabilities_rounded_to_0_and_1_are_coarse() -> None:
    said = coarse(_sigmoid(OUTPUTS).round(), OUTPUTS, "binary")
    assert said == "2 different values of 96 different outputs"
    assert coarse(np.eye(3)[CLASSES.argmax(1)], CLASSES, "multiclass")
    assert coarse((CLASSES > 0).astype(float), CLASSES, "multilabel")


@pytest.mark.parametrize(
    ("predictions", "outputs", "kind"),
    [
        (_sigmoid(OUTPUTS), OUTPUTS, "binary"),
        (_sigmoid(OUTPUTS).round(2), OUTPUTS, "binary"),
        (_softmax(CLASSES), CLASSES, "multiclass"),
        (_sigmoid(200 * OUTPUTS), 200 * OUTPUTS, "binary"),
        (_sigmoid(OUTPUTS.round()), OUTPUTS.round(), "binary"),
        (OUTPUTS.round(), OUTPUTS, "regression"),
        (_sigmoid(OUTPUTS[:40]).round(), OUTPUTS[:40], "binary"),
    ],
    ids=["sigmoid", "hundredths", "softmax", "saturated", "few outputs", "counts", "few rows"],
)
def test_probabilities_that_rank_are_not(
    predictions: npt.NDArray[np.float64], outputs: npt.NDArray[np.float64], kind: str
) -> None:
    assert coarse(predictions, outputs, kind) == ""


def test_what_is_no_probability_is_said() -> None:
    assert out_of_range(OUTPUTS, "binary").startswith("between -")
    assert "add up to" in out_of_range(_sigmoid(CLASSES), "multiclass")
    assert out_of_range(np.array([np.nan]), "regression") == "not finite"
    assert out_of_range(OUTPUTS, "regression") == ""
