"""Which metrics each kind of task has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from components.common.metrics.calibration import calibration_of
from components.common.metrics.contract import Family, Floats, Rows, Truth
from components.common.metrics.means import Means
from components.common.metrics.ranking import Ranking
from components.common.resampling import Draws

if TYPE_CHECKING:
    from training_core.task import Kind

_LABELS = ("log_loss", "brier", "error", "accuracy", "f1")
METRICS: dict[Kind, tuple[str, ...]] = {
    "binary": (*_LABELS, "precision", "recall", "auc", "average_precision", "calibration_error"),
    "multiclass": (*_LABELS, "calibration_error"),
    "multilabel": _LABELS,
    "regression": (
        "squared_error", "absolute_error", "quantile_loss_10", "quantile_loss_90", "rmse", "r2",
    ),
    "sequence": ("log_loss", "error", "accuracy", "perplexity"),
}  # fmt: skip
HIGHER = frozenset({"accuracy", "f1", "precision", "recall", "auc", "average_precision", "r2"})


def direction(metric: str) -> Literal["lower", "higher"]:
    """Say which values of a metric are better."""
    return "higher" if metric in HIGHER else "lower"


def families_of(kind: Kind, truth: Truth, predictions: Floats) -> list[Family]:
    """Return all metrics that a kind of task has, of one model's predictions.

    Raises:
        ValueError: A prediction is not finite: nothing may be decided on it.
    """
    found: list[Family] = [Means(kind, truth, predictions)]
    if kind == "binary":
        found.append(Ranking(truth >= 0.5, predictions.astype(np.float64)))
    calibration = calibration_of(kind, truth, predictions)
    return found if calibration is None else [*found, calibration]


def exact(families: Sequence[Family], rows: Rows | None = None) -> dict[str, float]:
    """Return the metrics of some rows or all; NaN where there is none (an AUC of one class)."""
    return {name: value for family in families for name, value in family.exact(rows).items()}


def drawn(
    families: Sequence[Family],
    draws: Draws,
    rows: Rows | None = None,
    *,
    points: Mapping[str, float] | None = None,
) -> dict[str, Floats]:
    """Return the metrics in each draw, each float64 [resamples].

    Args:
        families: Of one model.
        draws: Of the clusters.
        rows: Some of them; none: all.
        points: What `exact` says of them, if it is known.
    """
    points = exact(families, rows) if points is None else points
    found: dict[str, Floats] = {}
    for family in families:
        totals = family.totals(draws, rows)
        coarse = family.values(totals.sum(axis=0))
        for name, values in family.values(draws.drawn(totals)).items():
            found[name] = family.settled(values, point=points[name], coarse=float(coarse[name]))
    return found


def measured(kind: Kind, truth: Truth, predictions: Floats) -> dict[str, float]:
    """Return the metrics that there are of a model's predictions."""
    found = exact(families_of(kind, truth, predictions))
    return {name: value for name, value in found.items() if np.isfinite(value)}
