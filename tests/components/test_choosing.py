"""The choice among candidates: who is as good as the best, and whom each rule takes."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from components.common.decision_settings import Rule
from components.common.resampling import Draws
from components.select_checkpoint.choosing import Place, Scored, as_good, choose, chosen_by
from tests.components.selection_samples import scored


def flat(means: list[float], *, noise: float = 0.0, seed: int = 0) -> np.ndarray:
    """400 rows that all candidates find as hard, and some noise of each one's own."""
    random = np.random.default_rng(seed)
    common = random.normal(0, 1, 400)
    common -= common.mean()
    own = random.normal(0, 1, (len(means), 400))
    own -= own.mean(axis=1, keepdims=True)
    return np.asarray(means)[:, None] + common + noise * own


def chosen(
    rule: Rule, means: list[float], *, noise: float, places: list[Place] | None = None
) -> Place:
    found = scored(flat(means, noise=noise), places=places)
    return found.places[choose(found, rule, confidence=0.95).chosen]


@pytest.mark.parametrize(
    ("rule", "step"), [("best", 40), ("earliest", 20), ("latest", 60), ("flattest", 30)]
)
def test_each_rule_takes_its_own_among_those_as_good_as_the_best(rule: Rule, step: int) -> None:
    """10 and 70 are far off; the best, 40, stands beside a bad one."""
    means = [2.0, 0.52, 0.51, 0.50, 0.56, 0.52, 2.0]
    assert chosen(rule, means, noise=1.0).step == step


@pytest.mark.parametrize("rule", get_args(Rule))
def test_where_the_best_can_be_told_every_rule_takes_it(rule: Rule) -> None:
    """All rows are as hard for all: only the paired difference shows it."""
    assert chosen(rule, [0.52, 0.51, 0.50, 0.51], noise=0.01).step == 30


def test_of_equal_ones_the_best_is_the_earliest() -> None:
    assert chosen("best", [0.5, 0.5, 0.6], noise=0.0).step == 10


def test_an_average_stands_right_behind_its_last_member() -> None:
    places = [Place(10), Place(20), Place(20, (20, 10)), Place(30)]
    assert sorted([places[2], places[3], places[1], places[0]]) == places
    means = [2.0, 0.52, 0.50, 2.0]
    assert chosen("earliest", means, noise=1.0, places=places) == Place(20)
    assert chosen("latest", means, noise=1.0, places=places) == Place(20, (20, 10))


def test_an_averages_neighbours_are_its_members() -> None:
    """Not the bad checkpoint between them; of a checkpoint it is a neighbour."""
    places = [Place(10), Place(20), Place(30), Place(30, (10, 30))]
    means, reach = np.array([[0.50, 0.90, 0.52, 0.53]]), np.full((4, 4), np.inf)
    assert chosen_by("flattest", means, places=places, reach=reach).tolist() == [3]
    means = np.array([[0.50, 0.51, 0.90, 0.53]])
    assert chosen_by("flattest", means, places=places, reach=reach).tolist() == [0]


def test_one_candidate_is_chosen() -> None:
    for rule in get_args(Rule):
        assert chosen(rule, [0.5], noise=1.0).step == 10


def test_one_day_tells_nothing_apart() -> None:
    found = scored(flat([0.9, 0.5], noise=0.01), clusters=np.zeros(400))
    choice = choose(found, "best", confidence=0.95)
    assert choice.as_good.all()
    assert (choice.chosen, choice.reach[0]) == (1, np.inf)


def test_losses_are_weighed_by_units() -> None:
    """Sums over tokens: a long sequence counts for what it holds."""
    found = scored([[10.0, 1.0], [2.0, 3.0]], units=[10, 1])
    assert found.means == pytest.approx([1.0, 5 / 11])


def test_differences_are_paired_and_hold_at_once() -> None:
    """The truly best is among those as good in at least 95% of trials; fewer than 20 of 400 miss.

    Nine equal ones and the best, just ahead of them. With each difference at 95% by itself the
    truly best is left out more often.
    """
    missed = alone = 0
    random = np.random.default_rng(0)
    for trial in range(400):
        losses = random.normal(0, 1, (10, 200))
        losses[3] -= 0.001
        found = scored(losses, resamples=300, seed=trial)
        missed += not choose(found, "best", confidence=0.95).as_good[3]
        differences = found.means[3] - found.means
        errors = (found.drawn[:, [3]] - found.drawn).std(axis=0)
        alone += bool((differences > 1.96 * errors).any())
    assert missed <= 20
    assert alone > 40


def test_many_choices_are_made_at_once() -> None:
    means = np.array([[1.0, 2.0, 3.0], [3.0, 1.5, 1.0]])
    reach = np.full((3, 3), 0.6)
    assert as_good(means, reach).tolist() == [[True, False, False], [False, True, True]]


def test_what_is_not_finite_is_no_candidate() -> None:
    draws = Draws.of([0, 1], resamples=200)
    with pytest.raises(AssertionError):
        Scored([Place(1)], np.array([[np.nan], [1.0]]), np.ones(2), draws)
