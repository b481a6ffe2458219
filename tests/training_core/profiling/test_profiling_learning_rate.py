"""The learning-rate range test: same start, a proposal below where it diverges, no trace."""

from __future__ import annotations

import math

import pytest
import torch

from tests.training_core.profiling.profiled import planned
from training_core.profiling.confirming import better, confirm
from training_core.profiling.learning_rate import Rising, Smoothing, judge, sweep


def test_it_is_the_same_each_time() -> None:
    assert sweep(planned(), steps=40) == sweep(planned(), steps=40)


def test_rates_rise_evenly_in_their_logarithm_between_the_ends() -> None:
    rising = Rising(1e-4, 1.0, steps=5)
    assert [rising.at(step).lr for step in range(5)] == pytest.approx([1e-4, 1e-3, 1e-2, 0.1, 1])


def test_it_stops_where_the_loss_diverges_and_proposes_less_than_a_tenth_of_that() -> None:
    optimiser = {"name": "sgd", "lr": 0.01, "clip_norm": 0}
    found = sweep(planned(optimiser=optimiser), steps=150, high=1e5)
    assert found.diverged is not None
    assert len(found.rates) < 150
    assert found.steepest is not None
    assert found.proposed is not None
    assert found.proposed <= 0.1 * found.diverged
    assert 0.001 < found.proposed < 10
    assert found.fell > 0.2


def test_the_steepest_point_of_a_known_curve_is_found() -> None:
    rates = [10 ** (-4 + step / 20) for step in range(81)]
    falling = [0.5 + 1 / (1 + (rate / 1e-2) ** 2) for rate in rates]  # steepest at 0.01
    found = judge(1e-3, rates, falling, falling)
    assert found.steepest == pytest.approx(1e-2, rel=0.3)
    assert found.diverged is None
    assert found.proposed == found.steepest


def test_a_loss_that_falls_nowhere_has_no_proposal() -> None:
    rates = [10 ** (-4 + step / 20) for step in range(81)]
    rising = [1 + step / 100 for step in range(81)]
    found = judge(1e-3, rates, rising, rising)
    assert found.steepest is None
    assert found.proposed is None


def test_a_loss_that_falls_by_chance_alone_has_no_proposal() -> None:
    generator = torch.Generator().manual_seed(0)
    rates = [10 ** (-6 + step / 20) for step in range(140)]
    for _ in range(20):
        losses = (1 + 0.1 * torch.randn(140, generator=generator)).tolist()
        smoothing = Smoothing()
        found = judge(1e-3, rates, losses, [smoothing.add(loss) for loss in losses])
        assert found.steepest is None


def test_a_loss_that_is_no_number_is_where_it_diverged() -> None:
    rates, losses = [1e-3, 1e-2, 1e-1, 1.0], [1.0, 0.9, 0.5, math.nan]
    found = judge(1e-3, rates, losses, losses)
    assert found.diverged == 1.0
    assert found.fell == pytest.approx(0.5)


def test_a_rate_that_is_far_too_low_is_beaten_by_the_proposal() -> None:
    training = planned(optimiser={"lr": 1e-6})
    found = sweep(training, steps=120)
    probes = confirm(training, found, steps=40)
    assert better(probes) == "yes"
    assert probes["proposed"].loss < probes["planned"].loss
    start = {name: probe.losses[0].mean() for name, probe in probes.items()}
    assert len({float(loss) for loss in start.values()}) == 1  # the same weights and rows


def test_a_good_rate_is_not_called_beaten_by_itself() -> None:
    training = planned(optimiser={"lr": 0.01})
    found = judge(0.01, [0.001, 0.01, 0.1, 1.0], [1.0] * 4, [1.0] * 4)
    probes = {**confirm(training, found, steps=20)}
    probes["proposed"] = probes["planned"]
    assert better(probes) == "unclear"
