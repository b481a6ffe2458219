"""Scores of predictions, row by row; the same formulas for networks and baselines.

| kind       | truth                     | predictions          | metrics of a row                 |
|------------|---------------------------|----------------------|----------------------------------|
| binary     | [N], 0 or 1               | [N], of 1            | log_loss, brier, error           |
| multiclass | [N], the class            | [N, C]               | log_loss, brier, error           |
| multilabel | [N, K], 0 or 1            | [N, K], of each 1    | log_loss, brier, error: of labels|
| regression | [N], the value            | [N], the value       | squared_error, absolute_error, … |
| sequence   | [N, T], -100 is padding   | [N, T, V]            | log_loss, error: token sums      |

The names and formulas are those of the tasks' own metrics (`training_core/task.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from components.common.metrics.contract import Floats, Truth

if TYPE_CHECKING:
    from training_core.task import Kind

ROW_METRICS: dict[Kind, tuple[str, ...]] = {
    "binary": ("log_loss", "brier", "error"),
    "multiclass": ("log_loss", "brier", "error"),
    "multilabel": ("log_loss", "brier", "error"),
    "regression": ("squared_error", "absolute_error", "quantile_loss_10", "quantile_loss_90"),
    "sequence": ("log_loss", "error"),
}
_EPSILON = 1e-7  # a probability is never taken for certain; also float32's own resolution at 1


def row_scores(truth: Truth, predictions: Floats, *, kind: Kind = "binary") -> dict[str, Floats]:
    """Return the metrics of each row, each float64 [N]; shapes as in the table above.

    Raises:
        ValueError: A prediction is not finite: nothing may be decided on it.
    """
    if not np.isfinite(predictions).all():
        bad = int((~np.isfinite(predictions)).sum())
        raise ValueError(f"{bad} of {predictions.size} predictions are not finite")
    return _BY_KIND[kind](truth, predictions.astype(np.float64, copy=False))


def mean_scores(truth: Truth, predictions: Floats, *, kind: Kind = "binary") -> dict[str, Floats]:
    """Return the metrics of each row, of a sequence the mean over its tokens, each float64 [N].

    For means in which each row counts once: a long sequence does not count more than a short one.
    """
    units = np.maximum(units_of(truth, kind), 1.0)
    return {n: each / units for n, each in row_scores(truth, predictions, kind=kind).items()}


def units_of(truth: Truth, kind: Kind) -> Floats:
    """Return over how many units each row's scores are summed, float64 [N]: tokens, or one."""
    if kind == "sequence":
        return np.asarray(counting(truth).sum(axis=1), dtype=np.float64)
    return np.ones(len(truth))


def counting(tokens: Truth) -> npt.NDArray[np.bool_]:
    """Return which tokens are no padding."""
    from training_core.task import PADDING  # it imports torch, which takes a second and a half

    counts: npt.NDArray[np.bool_] = tokens != PADDING
    return counts


def _binary(truth: Truth, predictions: Floats) -> dict[str, Floats]:
    p, y = _possible(predictions), truth.astype(np.float64)
    return {
        "log_loss": -(y * np.log(p) + (1 - y) * np.log1p(-p)),
        "brier": (p - y) ** 2,
        "error": ((p >= 0.5) != (y >= 0.5)).astype(np.float64),
    }


def _multiclass(truth: Truth, predictions: Floats) -> dict[str, Floats]:
    of_truth = np.take_along_axis(predictions, truth[:, None], axis=1)[:, 0]
    return {
        "log_loss": -np.log(_possible(of_truth)),
        "brier": (predictions**2).sum(axis=1) - 2 * of_truth + 1,
        "error": (predictions.argmax(1) != truth).astype(np.float64),
    }


def _multilabel(truth: Truth, predictions: Floats) -> dict[str, Floats]:
    return {name: each.mean(axis=1) for name, each in _binary(truth, predictions).items()}


def _regression(truth: Truth, predictions: Floats) -> dict[str, Floats]:
    difference = predictions - truth.astype(np.float64)
    return {
        "squared_error": difference**2,
        "absolute_error": np.abs(difference),
        "quantile_loss_10": _pinball(difference, 0.1),
        "quantile_loss_90": _pinball(difference, 0.9),
    }


def _pinball(difference: Floats, quantile: float) -> Floats:
    """What a prediction costs that is to be above the truth in this share of cases."""
    return np.maximum(-quantile * difference, (1 - quantile) * difference)


def _sequence(truth: Truth, predictions: Floats) -> dict[str, Floats]:
    counts = counting(truth)
    token = np.where(counts, truth, 0)[:, :, None]
    of_truth = np.take_along_axis(predictions, token, axis=2)[:, :, 0]
    wrong = predictions.argmax(2) != truth
    return {
        "log_loss": np.where(counts, -np.log(_possible(of_truth)), 0.0).sum(axis=1),
        "error": (wrong & counts).sum(axis=1).astype(np.float64),
    }


def _possible(probability: Floats) -> Floats:
    return np.clip(probability, _EPSILON, 1 - _EPSILON)


_BY_KIND: dict[Kind, Callable[[Truth, Floats], dict[str, Floats]]] = {
    "binary": _binary,
    "multiclass": _multiclass,
    "multilabel": _multilabel,
    "regression": _regression,
    "sequence": _sequence,
}
