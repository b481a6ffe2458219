"""The best of several looks better than it is: by how much, before and after the holdout."""

from __future__ import annotations

import math
import time
from typing import get_args

import numpy as np
import pytest

from components.common.decision_figures import Optimism
from components.common.decision_settings import Rule
from components.common.optimism import measured_optimism, predicted_range
from components.common.resampling import Draws
from components.select_checkpoint.choosing import Place, Scored, choose
from components.select_checkpoint.optimism import expected_optimism
from tests.components.selection_samples import scored


def expected(found: Scored, rule: Rule = "best") -> Optimism:
    optimism = expected_optimism(found, rule, confidence=0.95)
    assert optimism is not None
    return optimism


def test_the_best_of_equal_ones_is_as_lucky_as_it_was_said_to_be() -> None:
    """60 trials of 12 equal candidates, whose true loss is 0: within a quarter of what is so.

    One alone has nothing to be chosen from, and no optimism.
    """
    random = np.random.default_rng(0)
    said, was, alone = [], [], []
    for trial in range(60):
        found = scored(random.normal(0, 1, (12, 300)), seed=trial)
        said.append(expected(found).expected)
        was.append(-found.means[choose(found, "best", confidence=0.95).chosen])
        alone.append(expected(scored(found.totals.T[:1], seed=trial)).expected)
    assert 0.75 < np.mean(said) / np.mean(was) < 1.25
    assert alone == [0.0] * 60


def test_where_the_best_is_far_ahead_there_is_no_luck_in_choosing_it() -> None:
    losses = np.random.default_rng(0).normal(0, 0.1, (5, 300)) + np.arange(5)[:, None]
    optimism = expected(scored(losses))
    assert optimism.expected == 0
    assert optimism.deviation > 0


def test_a_rule_that_looks_less_at_the_losses_is_less_optimistic() -> None:
    found = scored(np.random.default_rng(1).normal(0, 1, (12, 300)))
    assert expected(found, "earliest").expected < expected(found, "flattest").expected
    assert expected(found, "flattest").expected < expected(found, "best").expected


def test_one_day_says_nothing() -> None:
    found = scored(np.ones((2, 10)), clusters=np.zeros(10))
    assert expected_optimism(found, "best", confidence=0.95) is None


def test_fifty_candidates_of_a_million_rows_take_seconds() -> None:
    draws = Draws.of(np.arange(1_000_000), resamples=2000)
    totals = np.random.default_rng(0).normal(400, 5, (draws.count, 50))
    units = np.bincount(draws.codes, minlength=draws.count).astype(np.float64)
    found = Scored([Place(k) for k in range(50)], totals, units, draws)
    began = time.process_time()
    for rule in get_args(Rule):
        expected(found, rule)
    assert time.process_time() - began < 12


def holdout(losses: np.ndarray, days: np.ndarray, units: np.ndarray | None = None) -> Optimism:
    return measured_optimism(
        Optimism(expected=0.1, deviation=0.03, clusters=14.0),
        validation_loss=1.0,
        holdout_losses=losses,
        holdout_units=units,
        draws=Draws.of(days, resamples=2000),
        confidence=0.95,
    )


def test_what_the_holdout_shows_is_put_beside_what_was_expected() -> None:
    days = np.repeat(np.arange(14), 50)
    by_day = np.random.default_rng(0).normal(0, 0.04, 14)
    found = holdout(1.2 + (by_day - by_day.mean())[days], days)
    assert found.measured == pytest.approx(0.2)
    assert found.low is not None
    assert found.high is not None
    assert (found.low + found.high) / 2 == pytest.approx(0.1)
    spread = math.hypot(0.03, by_day.std(ddof=1) / math.sqrt(14))
    reach = (found.high - found.low) / 2
    assert reach == pytest.approx(2.07 * spread, rel=0.05), "t with about 24 degrees of freedom"


def test_the_holdouts_mean_is_over_units_and_its_error_by_clusters() -> None:
    days = np.arange(4)
    found = holdout(np.array([20.0, 2.0, 2.0, 2.0]), days, np.array([10.0, 1.0, 1.0, 1.0]))
    assert found.measured == pytest.approx(1.0)
    together = holdout(np.repeat(np.arange(14.0), 50), np.repeat(np.arange(14), 50))
    apart = holdout(np.repeat(np.arange(14.0), 50), np.arange(700))
    assert together.high is not None
    assert apart.high is not None
    assert together.high > 5 * apart.high


def test_a_holdout_of_one_day_has_no_interval() -> None:
    found = holdout(np.ones(5), np.zeros(5))
    assert (found.measured, found.low, found.high) == (0.0, None, None)


def test_few_clusters_widen_the_range() -> None:
    few = Optimism(expected=0.0, deviation=1.0, clusters=5.0)
    known = Optimism(expected=0.0, deviation=1.0)
    assert predicted_range(known, 0.0, 0.95) == pytest.approx((-1.96, 1.96), abs=0.001)
    assert predicted_range(few, 0.0, 0.95) == pytest.approx((-2.776, 2.776), abs=0.001)
    assert predicted_range(few, 0.0, 0.5)[1] < 0.75
    assert predicted_range(Optimism(expected=0.5, deviation=0.0), 0.0, 0.95) == (0.5, 0.5)
