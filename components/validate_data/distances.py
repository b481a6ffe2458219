"""How far two distributions over the same bins are apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from components.validate_data.profile import Counts, Floats

FLOOR = 1e-4  # share given to an empty bin, so that its logarithm exists


def shares_of(counts: Any) -> Floats:
    """Shares along the last axis; zeros where there are no rows."""
    counts = np.asarray(counts, np.float64)
    shares: Floats = counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    return shares


def psi(now: Any, before: Any) -> Floats:
    """Population stability index over the last axis of two arrays of counts.

    0 where a side has no rows: that there is nothing to compare is not a distance.
    """
    now, before = np.asarray(now, np.float64), np.asarray(before, np.float64)
    a, b = np.maximum(shares_of(now), FLOOR), np.maximum(shares_of(before), FLOOR)
    there = now.any(axis=-1) & before.any(axis=-1)
    index: Floats = np.where(there, ((a - b) * np.log(a / b)).sum(axis=-1), 0.0)
    return index


def jensen_shannon(now: Any, before: Any) -> float:
    """Jensen-Shannon distance, base 2: 0 the same, 1 nothing in common."""
    a, b = shares_of(now), shares_of(before)
    middle = (a + b) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.where(p > 0, p * np.log2(p / middle), 0.0).sum() for p in (a, b)]
    return float(np.sqrt(max(0.0, sum(terms) / 2)))


def kolmogorov_smirnov(now: Counts, before: Counts) -> float:
    """Largest difference of two cumulative distributions at the cells' edges."""
    return float(np.abs(np.cumsum(shares_of(now)) - np.cumsum(shares_of(before))).max())


def chi_square_p(now: Counts, before: Counts) -> float | None:
    """P-value of the chi-square test of equal shares; None where there is nothing to test."""
    from scipy.stats import chi2_contingency

    table = np.array([now, before])
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2 or not table.sum(axis=1).all():
        return None
    return float(chi2_contingency(table, correction=False).pvalue)


def cramers_v(table: npt.NDArray[np.int64]) -> float | None:
    """Cramér's V of a table of counts [2, values]; None where it is not defined."""
    table = table[:, table.sum(axis=0) > 0].astype(np.float64)
    if table.shape[1] < 2 or not table.sum(axis=1).all():
        return None
    total = table.sum()
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    return float(np.sqrt(((table - expected) ** 2 / expected).sum() / total))
