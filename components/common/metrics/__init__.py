"""Metrics of predictions, made of totals: exact on the rows, and drawn with them.

    families = families_of("binary", truth, predictions)
    exact(families)                       # {"log_loss": 0.46, "auc": 0.73, …}
    drawn(families, draws)                # the same in each draw, float64 [resamples]

A family of metrics is facts that add up over rows, and the numbers that are made of them. So a draw
of clusters needs their totals alone, whatever the metric, and the same formulas serve networks,
baselines and slices.
"""

from components.common.metrics.catalogue import (
    HIGHER,
    METRICS,
    direction,
    drawn,
    exact,
    families_of,
    measured,
)
from components.common.metrics.contract import Family, Floats, Truth
from components.common.metrics.rows import ROW_METRICS, mean_scores, row_scores

__all__ = [
    "HIGHER",
    "METRICS",
    "ROW_METRICS",
    "Family",
    "Floats",
    "Truth",
    "direction",
    "drawn",
    "exact",
    "families_of",
    "mean_scores",
    "measured",
    "row_scores",
]
