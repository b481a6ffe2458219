"""Intervals of means over rows that come in clusters (days), by the paired bootstrap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd


@dataclass(frozen=True)
class Interval:
    """A mean and where it may lie.

    Attributes:
        clusters: Independent units that were drawn.
    """

    mean: float
    low: float
    high: float
    clusters: int


def mean_interval(
    values: npt.NDArray[np.float64],
    clusters: Any,
    *,
    confidence: float,
    resamples: int,
    noise: float = 0.0,
    seed: int = 0,
) -> Interval:
    """Return the mean of row values with its interval, drawing whole clusters.

    For a paired comparison pass the differences: the same rows are then drawn for both models.
    With few clusters the plain percentile interval is too narrow; it is taken at the wider
    percentiles that make it as wide as the t interval (Hesterberg 2015, "What Teachers Should Know
    About the Bootstrap", section 3.4: expanded percentiles).

    Args:
        values: float64 [N].
        clusters: The cluster of each row; any hashable values, length N.
        confidence: For example 0.95.
        resamples: Bootstrap draws.
        noise: Standard deviation that is added to each draw (retraining noise).
        seed: Of the draws.

    Raises:
        ValueError: No rows, or a value that is not finite.
    """
    if len(values) == 0 or not np.isfinite(values).all():
        raise ValueError("an interval needs finite values, at least one")
    codes, names = pd.factorize(pd.Series(np.asarray(clusters)))
    count = len(names)
    mean = float(values.mean())
    if count < 2:
        return Interval(mean, -math.inf, math.inf, count)
    sums = np.bincount(codes, weights=values, minlength=count)
    sizes = np.bincount(codes, minlength=count).astype(np.float64)
    generator = np.random.default_rng(seed)
    drawn = generator.multinomial(count, np.full(count, 1 / count), size=resamples)
    means = (drawn @ sums) / (drawn @ sizes)
    if noise:
        means = means + generator.normal(0.0, noise, size=resamples)
    tail = _expanded_tail((1 - confidence) / 2, count)
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(mean, float(low), float(high), count)


def _expanded_tail(tail: float, count: int) -> float:
    """The tail whose normal quantile is as far out as the t quantile, small-sample corrected."""
    from scipy.special import stdtrit  # scipy.stats takes a second to import, this 0.3

    wide = math.sqrt(count / (count - 1)) * float(stdtrit(count - 1, tail))
    return NormalDist().cdf(wide)
