"""Scores of predictions, row by row; the same formulas for networks and baselines.

| kind       | truth                     | predictions          | metrics of a row               |
|------------|---------------------------|----------------------|--------------------------------|
| binary     | [N], 0 or 1               | [N], of 1            | log_loss, brier, error         |
| multiclass | [N], the class            | [N, C]               | log_loss, error                |
| multilabel | [N, K], 0 or 1            | [N, K], of each 1    | log_loss, error: label means   |
| regression | [N], the value            | [N], the value       | squared_error, absolute_error  |
| sequence   | [N, T], -100 is padding   | [N, T, V]            | log_loss, error: token sums    |

The names and formulas are those of the tasks' own metrics (`training_core/task.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from training_core.task import Kind

Floats = npt.NDArray[np.float64]
Truth = npt.NDArray[Any]
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


def mean_scores(truth: Truth, predictions: Floats, *, kind: Kind = "binary") -> dict[str, float]:
    """Return the means of the row scores, by token for sequences, and the AUC of binary ones."""
    from sklearn.metrics import roc_auc_score

    units = int(_counting(truth).sum()) if kind == "sequence" else len(truth)
    rows = row_scores(truth, predictions, kind=kind)
    means = {name: float(values.sum() / units) for name, values in rows.items()}
    if kind == "binary":
        means["auc"] = float(roc_auc_score(truth >= 0.5, predictions))
    return means


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
        "error": (predictions.argmax(1) != truth).astype(np.float64),
    }


def _multilabel(truth: Truth, predictions: Floats) -> dict[str, Floats]:
    each = _binary(truth, predictions)
    return {name: each[name].mean(axis=1) for name in ("log_loss", "error")}


def _regression(truth: Truth, predictions: Floats) -> dict[str, Floats]:
    difference = predictions - truth.astype(np.float64)
    return {"squared_error": difference**2, "absolute_error": np.abs(difference)}


def _sequence(truth: Truth, predictions: Floats) -> dict[str, Floats]:
    counts = _counting(truth)
    token = np.where(counts, truth, 0)[:, :, None]
    of_truth = np.take_along_axis(predictions, token, axis=2)[:, :, 0]
    wrong = predictions.argmax(2) != truth
    return {
        "log_loss": np.where(counts, -np.log(_possible(of_truth)), 0.0).sum(axis=1),
        "error": (wrong & counts).sum(axis=1).astype(np.float64),
    }


def _counting(tokens: Truth) -> npt.NDArray[np.bool_]:
    from training_core.task import PADDING  # it imports torch, which takes a second and a half

    counting: npt.NDArray[np.bool_] = tokens != PADDING
    return counting


def _possible(probability: Floats) -> Floats:
    return np.clip(probability, _EPSILON, 1 - _EPSILON)


_BY_KIND: dict[Kind, Callable[[Truth, Floats], dict[str, Floats]]] = {
    "binary": _binary,
    "multiclass": _multiclass,
    "multilabel": _multilabel,
    "regression": _regression,
    "sequence": _sequence,
}
