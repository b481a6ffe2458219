"""What predictions of a task's kind cannot be."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Predictions = npt.NDArray[np.float64]

_PROBABILITIES = ("binary", "multilabel", "multiclass", "sequence")
_VALUES = 50  # different outputs from which something may be said
_COARSE = 0.1  # as many different probabilities: 96 rows rounded to tenths have 11
_SATURATED = 10.0  # an output beyond it may have the probability 1 in single precision


def out_of_range(predictions: Predictions, kind: str) -> str:
    """Say what predictions of this kind cannot be; empty: nothing."""
    if not np.isfinite(predictions).all():
        return "not finite"
    if kind not in _PROBABILITIES:
        return ""
    low, high = float(predictions.min()), float(predictions.max())
    if low < -1e-6 or high > 1 + 1e-6:
        return f"between {low:.3g} and {high:.3g}"
    sums = predictions.sum(-1)
    if kind in ("multiclass", "sequence") and np.abs(sums - 1).max() > 1e-3:
        return f"not probabilities of classes: those of a row add up to {float(sums.max()):.3g}"
    return ""


def coarse(predictions: Predictions, outputs: Predictions, kind: str) -> str:
    """Say how few probabilities are made of how many outputs; empty: enough.

    Rounded to 0 and 1 they rank nothing, and no threshold can be chosen any more.

    Args:
        predictions: [N, …].
        outputs: Of the network for the same rows, [N, …].
        kind: Of the task.
    """
    if kind not in _PROBABILITIES or len(predictions) != len(outputs):
        return ""
    sure = np.abs(outputs).reshape(len(outputs), -1).max(axis=1) < _SATURATED
    made, of = len(np.unique(predictions[sure])), len(np.unique(outputs[sure]))
    if of < _VALUES or made >= _COARSE * of:
        return ""
    return f"{made} different values of {of} different outputs"
