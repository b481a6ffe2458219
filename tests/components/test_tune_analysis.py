"""What is said of trials whose answer is known."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from components.common.project import Project, open_project
from components.common.tune_figures import TrialFigures
from components.tune.analysis import boundary, enough, isolation, widened
from components.tune.curves import diagnosed
from components.tune.space import Dimension

RATE = Dimension("training.optimiser.lr", "nuisance", 0.01, low=1e-4, high=1.0, log=True)
WARMUP = Dimension("training.schedule.warmup", "nuisance", 0.1, low=0.0, high=0.3)


def trials(dimension: Dimension, best_at: float, count: int = 40) -> list[TrialFigures]:
    """Whole trials spread over a range, worse the farther from one place of it; the best first."""
    found = []
    for number in range(count):
        share = (number + 0.5) / count
        span = dimension.high / dimension.low if dimension.log else 0.0
        value = (
            dimension.low * span**share
            if dimension.log
            else dimension.low + share * (dimension.high - dimension.low)
        )
        found.append(
            TrialFigures(
                number=number, sampler="quasi_random", values={dimension.path: value},
                ended="finished", value=0.4 + (share - best_at) ** 2,
            )
        )  # fmt: skip
    return sorted(found, key=lambda each: each.value or 0.0)


@pytest.mark.parametrize(
    ("best_at", "end"), [(0.0, "low"), (0.05, "low"), (0.5, ""), (0.35, ""), (0.97, "high")]
)
def test_the_best_points_at_an_end_are_noticed(best_at: float, end: str) -> None:
    assert boundary(RATE, trials(RATE, best_at)) == end
    assert boundary(WARMUP, trials(WARMUP, best_at)) == end


def test_a_setting_without_effect_is_at_a_boundary_no_more_often_than_promised() -> None:
    import random

    chance, alarms = random.Random(0), 0
    for _ in range(400):
        ranked = trials(RATE, 0.5)
        chance.shuffle(ranked)  # the best are anywhere
        alarms += bool(boundary(RATE, ranked))
    assert alarms / 400 < 0.10  # one of twenty at either end


def test_few_trials_say_nothing_of_a_boundary() -> None:
    assert boundary(RATE, trials(RATE, 0.0, count=9)) == ""


@pytest.fixture
def project(fresh_project: Path) -> Project:
    return open_project(fresh_project)


def test_a_range_is_widened_the_right_way_and_no_farther_than_the_setting_allows(
    project: Project,
) -> None:
    new, words = widened(RATE, "low", project)
    assert math.isclose(new, 1e-6)
    assert "down to 1e-06" in words
    assert widened(RATE, "high", project)[0] == 100.0
    new, words = widened(WARMUP, "low", project)
    assert (new, words) == (0.0, "the setting allows no more than 0: leave it there")
    assert widened(WARMUP, "high", project)[0] == 0.45


def test_isolation_shows_the_best_of_each_piece() -> None:
    pieces = isolation(RATE, trials(RATE, 0.5)).pieces
    assert [piece.trials for piece in pieces] == [8] * 5
    values = [piece.best for piece in pieces]
    assert min(range(5), key=lambda i: values[i] or 9) == 2
    assert pieces[0].words.startswith("0.0001 to ")


def test_more_points_are_asked_for_only_where_they_would_bring_more_than_seeds_differ_by() -> None:
    ranked = trials(RATE, 0.5)
    assert "would bring little" in enough(ranked, ranked, 0.01, maximise=False)
    assert "likely to bring more" in enough(ranked, ranked, 1e-9, maximise=False)
    assert "too few" in enough(ranked[:9], ranked[:9], 0.01, maximise=False)


def test_half_of_the_trials_are_expected_to_find_what_all_halves_find_in_the_mean() -> None:
    from itertools import combinations
    from statistics import fmean

    from components.tune.analysis import _expected_best

    values = [0.1, 0.2, 0.5, 0.9, 1.4, 2.0]
    assert math.isclose(_expected_best(values, 3), fmean(min(c) for c in combinations(values, 3)))


FALLING = [(i, 1.0 / (i + 1)) for i in range(30)]
SETTLED = [0.60, 0.55, 0.52, 0.505, 0.5, 0.499, 0.4985, 0.498, 0.4978, 0.4977]


def shown(values: list[float], curve: list[tuple[int, float]] = FALLING) -> set[str]:
    trial = TrialFigures(
        number=1, sampler="present", values={}, ended="finished", value=min(values),
        evaluations=list(enumerate(values)), curve=list(curve),
    )  # fmt: skip
    return {each.finding for each in diagnosed(trial, noise=0.001, maximise=False)}


@pytest.mark.parametrize(
    ("finding", "values"),
    [
        ("overfitting", [0.60, 0.52, 0.50, 0.49, 0.495, 0.51, 0.52, 0.53, 0.54, 0.55]),
        ("late instability", [0.60, 0.55, 0.52, 0.51, 0.50, 0.49, 0.48, 0.47, 0.55, 0.465]),
        ("saturated early", [0.60, 0.51, 0.50, 0.5, 0.4999, 0.5, 0.5, 0.5, 0.5, 0.5]),
        ("still improving", [0.60, 0.58, 0.56, 0.54, 0.52, 0.50, 0.48, 0.46, 0.44, 0.42]),
    ],
)
def test_a_curve_that_shows_one_thing_is_said_to_show_that(
    finding: str, values: list[float]
) -> None:
    assert shown(values) == {finding}


def test_a_curve_that_settles_shows_nothing_odd() -> None:
    assert shown(SETTLED) == set()


def test_a_training_loss_that_rises_is_a_bug_and_one_that_scatters_has_variance() -> None:
    rising = [(i, 0.5 + 0.01 * abs(i - 10)) for i in range(30)]
    assert shown(SETTLED, rising) == {"training loss rising"}
    scattered = [(i, 0.5 + 0.2 * (-1) ** i) for i in range(31)]
    assert shown(SETTLED, scattered) == {"high step variance"}


def test_a_metric_that_is_maximised_is_read_the_other_way_round() -> None:
    trial = TrialFigures(
        number=1, sampler="present", values={}, ended="finished", value=0.9,
        evaluations=[(i, 1 - v) for i, v in enumerate(SETTLED)], curve=list(FALLING),
    )  # fmt: skip
    assert diagnosed(trial, noise=0.001, maximise=True) == []
