"""Curves and tables that show predictions: ROC, confusion, reliability."""

from __future__ import annotations

import numpy as np

from components.common.decision_figures import ReliabilityBin
from components.common.metrics import Floats, Truth
from components.common.metrics.calibration import Calibration
from components.evaluate_model.comparing import Models

ROC_POINTS = 100
MOST_CLASSES = 20


def roc(truth: Truth, probability: Floats) -> tuple[list[float], list[float], list[float]]:
    """Return a ROC curve of at most a hundred points: false and true positive rates, thresholds.

    Of one class alone there is none: all three are empty.
    """
    from sklearn.metrics import roc_curve

    if len(np.unique(truth >= 0.5)) < 2:
        return [], [], []
    false_positive, true_positive, threshold = roc_curve(truth >= 0.5, probability)
    picked = np.unique(np.linspace(0, len(threshold) - 1, ROC_POINTS).astype(int))
    finite = np.minimum(threshold, 1.0)
    return (
        false_positive[picked].tolist(), true_positive[picked].tolist(), finite[picked].tolist()
    )  # fmt: skip


def confusion(models: Models, model: str) -> list[list[int]]:
    """Return rows by truth and columns by prediction; none for other tasks or too many classes."""
    kind, truth = models.holdout.kind, models.holdout.truth
    predictions = models.predictions[model]
    if kind == "binary":
        was, said, count = truth >= 0.5, predictions >= 0.5, 2
    elif kind == "multiclass" and predictions.shape[1] <= MOST_CLASSES:
        was, said, count = truth, predictions.argmax(1), predictions.shape[1]
    else:
        return []
    places = np.asarray(was).astype(np.int64) * count + np.asarray(said).astype(np.int64)
    table: list[list[int]] = np.bincount(places, minlength=count**2).reshape(count, -1).tolist()
    return table


def reliability(models: Models, model: str) -> list[ReliabilityBin]:
    """Return mean prediction and rate of what came true, in bins of equally many rows."""
    for family in models.families[model]:
        if isinstance(family, Calibration):
            return [
                ReliabilityBin(predicted=predicted, observed=observed, rows=rows)
                for predicted, observed, rows in family.table()
            ]
    return []
