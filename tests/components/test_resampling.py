"""Intervals over clusters: they cover what they promise, and refuse what is no number."""

from __future__ import annotations

import math

import numpy as np
import pytest

from components.common.resampling import Interval, mean_interval


def interval(values: object, clusters: object, **settings: float) -> Interval:
    return mean_interval(
        np.asarray(values, dtype=np.float64),
        clusters,
        **{"confidence": 0.95, "resamples": 300, **settings},  # type: ignore[arg-type]
    )


@pytest.mark.smoke  # thousands of intervals
@pytest.mark.parametrize("days", [7, 14])
def test_the_clustered_interval_covers_the_truth_as_often_as_it_says(days: int) -> None:
    """300 trials of days that move together; 90% to 98% is within what 300 trials can tell."""
    random = np.random.default_rng(days)
    clusters = np.repeat(np.arange(days), 30)
    covered = by_rows = 0
    for trial in range(300):
        values = random.normal(0, 1, days)[clusters] + random.normal(0, 1, len(clusters))
        found = interval(values, clusters, seed=trial)
        covered += found.low <= 0 <= found.high
        alone = interval(values, np.arange(len(values)), seed=trial)
        by_rows += alone.low <= 0 <= alone.high
    assert 0.90 <= covered / 300 <= 0.98
    assert by_rows / 300 < 0.6, "rows of a day are not independent: drawing them misleads"


def test_the_mean_is_that_of_rows_and_not_of_clusters() -> None:
    found = interval([0, 0, 0, 1], [1, 1, 1, 2])
    assert (found.mean, found.clusters) == (0.25, 2)


def test_retraining_noise_widens_the_interval() -> None:
    values = np.random.default_rng(0).normal(0, 0.001, 700)
    days = np.arange(700) // 50
    narrow, wide = interval(values, days), interval(values, days, noise=0.01)
    assert wide.high - wide.low > 5 * (narrow.high - narrow.low)
    assert wide.mean == narrow.mean


def test_the_same_seed_gives_the_same_interval() -> None:
    values, days = np.random.default_rng(0).normal(size=100), np.arange(100) // 10
    assert interval(values, days, seed=3) == interval(values, days, seed=3)
    assert interval(values, days, seed=3) != interval(values, days, seed=4)


def test_one_cluster_says_nothing() -> None:
    found = interval([1.0, 1.0], ["monday", "monday"])
    assert (found.low, found.high) == (-math.inf, math.inf)


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf, 0.0]])
def test_what_is_no_number_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite values"):
        interval(values, range(len(values)))
