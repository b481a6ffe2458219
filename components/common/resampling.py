"""Intervals by the bootstrap of whole clusters: one set of draws for all that is compared.

    draws = Draws.of(days, resamples=2000)
    totals = draws.totals(np.stack([losses, np.ones(len(losses))], axis=1))   # [clusters, 2]
    drawn = draws.drawn(totals)                                               # [resamples, 2]
    interval = draws.interval(losses.mean(), drawn[:, 0] / drawn[:, 1], confidence=0.95)

Rows of a cluster (a day, a customer) are drawn together, since they are not independent. Whatever
adds up over rows can be drawn by its totals, so a draw costs the same for a thousand rows and for a
million, and two models are always compared on the same drawn rows: paired.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
# Independent rows are drawn in this many groups, put together by chance: the standard error of a
# mean is then known to 1.6 % (its square has that many degrees of freedom), at a cost that does not
# grow with the rows.
MOST_CLUSTERS = 2048


@dataclass(frozen=True)
class Interval:
    """A number and where the truth may lie.

    Attributes:
        clusters: Independent units that were drawn.
    """

    mean: float
    low: float
    high: float
    clusters: int


@dataclass(frozen=True)
class Draws:
    """How often each cluster is in each draw.

    Attributes:
        weights: float64 [resamples, clusters]; each row adds up to `clusters`.
        codes: int64 [N], the cluster of each row.
        units: Independent units that the clusters stand for: clusters, or rows put into groups.
    """

    weights: Floats
    codes: Codes
    units: int

    @classmethod
    def of(cls, clusters: Any, *, resamples: int, seed: int = 0) -> Draws:
        """Draw clusters with replacement, as many as there are.

        Args:
            clusters: The cluster of each row; any hashable values, length N.
            resamples: Draws.
            seed: Of the draws.
        """
        codes, names = pd.factorize(pd.Series(np.asarray(clusters)))
        units = count = len(names)
        generator = np.random.default_rng(seed)
        if units > MOST_CLUSTERS:
            count = MOST_CLUSTERS
            groups = generator.permutation(np.arange(units) % count)
            codes = groups[codes]
        chances = np.full(max(count, 1), 1 / max(count, 1))
        weights = generator.multinomial(count, chances, size=resamples).astype(np.float64)
        return cls(weights, codes.astype(np.int64), units)

    @property
    def count(self) -> int:
        """Clusters that are drawn."""
        return int(self.weights.shape[1])

    @property
    def resamples(self) -> int:
        return int(self.weights.shape[0])

    @cached_property
    def effective(self) -> float:
        """Clusters of equal size that would weigh as unevenly: fewer, if some are large."""
        return self.effective_of(np.bincount(self.codes, minlength=self.count))

    @staticmethod
    def effective_of(sizes: npt.NDArray[Any]) -> float:
        """The same of clusters of these sizes: the square of their sum over that of squares."""
        sizes = sizes.astype(np.float64)
        squares = float((sizes**2).sum())
        return float(sizes.sum() ** 2 / squares) if squares else 0.0

    def totals(self, facts: npt.NDArray[Any], rows: npt.NDArray[Any] | None = None) -> Floats:
        """Add rows up by cluster.

        Args:
            facts: [N, F]; or [M, F] where `rows` are given.
            rows: int [M], the places of the rows that `facts` are of.

        Returns:
            float64 [clusters, F].
        """
        codes = self.codes if rows is None else self.codes[rows]
        columns = [np.bincount(codes, weights=c, minlength=self.count) for c in facts.T]
        return np.stack(columns, axis=1)

    def drawn(self, totals: Floats) -> Floats:
        """Return the totals of each draw, float64 [resamples, F], of those by cluster."""
        return np.asarray(self.weights @ totals)

    def interval(
        self,
        point: float,
        values: Floats,
        *,
        confidence: float,
        effective: float | None = None,
        noise: Noise | None = None,
    ) -> Interval:
        """Return a number's interval from its values in the draws.

        With few clusters the plain percentiles are too narrow; it is taken at the wider ones that
        make it as wide as the t interval (Hesterberg 2015, "What Teachers Should Know About the
        Bootstrap", section 3.4: expanded percentiles).

        Args:
            point: The number on the rows themselves.
            values: float64 [resamples]; not finite where a draw has none.
            confidence: For example 0.95.
            effective: Clusters of equal size; none: those of all rows.
            noise: Added to each draw (retraining noise).
        """
        effective = self.effective if effective is None else effective
        finite = values[np.isfinite(values)]
        if effective < 1.5 or not math.isfinite(point) or len(finite) < 0.9 * len(values):
            return Interval(point, -math.inf, math.inf, self.units)
        if noise is not None and noise.deviation:
            finite = finite + noise.drawn(len(finite))
        tail = expanded_tail((1 - confidence) / 2, effective)
        low, high = np.quantile(finite, [tail, 1 - tail])
        return Interval(point, float(low), float(high), self.units)

    def together(
        self, points: Floats, values: Floats, *, confidence: float, effective: Sequence[float]
    ) -> list[tuple[float, float]]:
        """Return intervals that hold for several numbers at once.

        Each is as many of its standard errors wide as the largest of all deviations needs (the
        max-T of Westfall and Young 1993): what goes up and down together costs less than what is
        independent.

        Args:
            points: float64 [K].
            values: float64 [resamples, K].
            confidence: That all K intervals hold.
            effective: Clusters of each, K long.
        """
        errors = np.nanstd(values, axis=0, ddof=1)
        usable = np.isfinite(points) & np.isfinite(errors) & (np.asarray(effective) >= 1.5)
        if not usable.any():
            return [(-math.inf, math.inf)] * len(points)
        scale = np.where(errors[usable] > 0, errors[usable], 1.0)
        away = np.abs(values[:, usable] - points[usable]) / scale
        farthest = np.nanmax(away[np.isfinite(away).any(axis=1)], axis=1)
        tail = 1 - NormalDist().cdf(float(np.quantile(farthest, confidence)))
        found = []
        for point, error, fair, some in zip(points, errors, usable, effective, strict=True):
            reach = -_expanded(max(tail, 1e-9), some) * error if fair else math.inf
            found.append((float(point - reach), float(point + reach)))
        return found


@dataclass(frozen=True)
class Noise:
    """What is added to a difference because trainings differ.

    Attributes:
        deviation: Standard deviation.
        freedom: Degrees of freedom with which it was measured; None: it is known.
    """

    deviation: float
    freedom: int | None = None

    def drawn(self, count: int, seed: int = 1) -> Floats:
        """Return draws of it, float64 [count]: normal, or t where it was measured with few."""
        generator = np.random.default_rng(seed)
        if self.freedom is None:
            return generator.normal(0.0, self.deviation, count)
        return np.asarray(self.deviation * generator.standard_t(max(self.freedom, 1), count))


def expanded_tail(tail: float, count: float) -> float:
    """The tail whose normal quantile is as far out as the t quantile, small-sample corrected."""
    return NormalDist().cdf(_expanded(tail, count))


def _expanded(tail: float, count: float) -> float:
    from scipy.special import stdtrit  # scipy.stats takes a second to import, this 0.3

    return math.sqrt(count / (count - 1)) * float(stdtrit(count - 1, tail))


def mean_interval(
    values: Floats,
    clusters: Any,
    *,
    confidence: float,
    resamples: int,
    noise: float = 0.0,
    seed: int = 0,
) -> Interval:
    """Return the mean of row values with its interval, drawing whole clusters.

    Args:
        values: float64 [N]; of a paired comparison, the differences.
        clusters: The cluster of each row, length N.
        confidence: For example 0.95.
        resamples: Bootstrap draws.
        noise: Standard deviation that is added to each draw (retraining noise).
        seed: Of the draws.

    Raises:
        ValueError: No rows, or a value that is not finite.
    """
    if len(values) == 0 or not np.isfinite(values).all():
        raise ValueError("an interval needs finite values, at least one")
    draws = Draws.of(clusters, resamples=resamples, seed=seed)
    drawn = draws.drawn(draws.totals(np.stack([values, np.ones(len(values))], axis=1)))
    return draws.interval(
        float(values.mean()), drawn[:, 0] / drawn[:, 1], confidence=confidence, noise=Noise(noise)
    )
