"""Scores of probabilities, row by row; the same formulas for networks and baselines."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_EPSILON = 1e-7  # a probability is never taken for certain; also float32's own resolution at 1


def row_scores(truth: npt.NDArray[np.float32] | Floats, probability: Floats) -> dict[str, Floats]:
    """Return log loss, Brier score and error of each row, each float64 [N].

    Raises:
        ValueError: A prediction is not finite: nothing may be decided on it.
    """
    if not np.isfinite(probability).all():
        bad = int((~np.isfinite(probability)).sum())
        raise ValueError(f"{bad} of {len(probability)} predictions are not finite")
    p = np.clip(probability.astype(np.float64), _EPSILON, 1 - _EPSILON)
    y = truth.astype(np.float64)
    return {
        "log_loss": -(y * np.log(p) + (1 - y) * np.log1p(-p)),
        "brier": (p - y) ** 2,
        "error": ((p >= 0.5) != (y >= 0.5)).astype(np.float64),
    }


def mean_scores(truth: npt.NDArray[np.float32] | Floats, probability: Floats) -> dict[str, float]:
    """Return the means of the row scores, and the AUC."""
    from sklearn.metrics import roc_auc_score

    means = {name: float(values.mean()) for name, values in row_scores(truth, probability).items()}
    return {**means, "auc": float(roc_auc_score(truth >= 0.5, probability))}
