"""How far two models' predictions lie apart: the expected total variation of what they predict.

| kind       | of a row (of a sequence: of a token)                                         |
|------------|------------------------------------------------------------------------------|
| binary     | the difference of the probabilities                                          |
| multiclass | half the sum of the differences over the classes                             |
| multilabel | the mean difference over the labels                                          |
| regression | the difference in standard deviations of the target                          |
| sequence   | half the sum over the vocabulary; padding does not count                     |

Total variation is the largest difference of the probabilities that two models give any event, so
0.05 says: whatever is decided by a threshold on them sees them 0.05 apart in the mean. It is the
"soft" prediction churn, L1, of Bhojanapalli et al. 2021 (arXiv:2102.03349), and its mean bounds
every shift of a mean prediction. `churned` is churn itself, the share of rows that are decided
otherwise (Milani Fard et al. 2016, "Launch and Iterate: Reducing Prediction Churn").
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from components.common.metrics import Floats, Truth
from components.common.metrics.rows import counting, units_of

if TYPE_CHECKING:
    from training_core.task import Kind


def row_shifts(one: Floats, other: Floats, truth: Truth, *, kind: Kind) -> tuple[Floats, Floats]:
    """Return each row's sum of shifts, and over how many units it is one, float64 [N] both.

    Args:
        one, other: Predictions of the same rows, shaped as the kind has them.
        truth: Its standard deviation is a regression's unit; its padding is left out.
    """
    apart = np.abs(np.asarray(one, dtype=np.float64) - np.asarray(other, dtype=np.float64))
    if kind == "regression":
        spread = float(np.std(np.asarray(truth, dtype=np.float64)))
        apart = apart / spread if spread > 0 else np.where(apart > 0, np.inf, 0.0)
    elif kind == "multiclass":
        apart = apart.sum(axis=1) / 2
    elif kind == "multilabel":
        apart = apart.mean(axis=1)
    elif kind == "sequence":
        apart = np.where(counting(truth), apart.sum(axis=2) / 2, 0.0).sum(axis=1)
    return apart, units_of(truth, kind)


def mean_shift(one: Floats, other: Floats, truth: Truth, *, kind: Kind) -> float:
    """Return the mean over rows, of sequences over tokens; NaN where there is none."""
    sums, units = row_shifts(one, other, truth, kind=kind)
    return float(sums.sum() / units.sum()) if units.sum() else math.nan


def churned(one: Floats, other: Floats, truth: Truth, *, kind: Kind) -> float | None:
    """Return the share of rows, labels or tokens that are decided otherwise; None: of numbers."""
    if kind == "regression":
        return None
    if kind in ("binary", "multilabel"):
        return float(((one >= 0.5) != (other >= 0.5)).mean())
    different = one.argmax(axis=-1) != other.argmax(axis=-1)
    return float(different[counting(truth)].mean() if kind == "sequence" else different.mean())
