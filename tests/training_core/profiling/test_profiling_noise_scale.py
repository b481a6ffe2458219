"""The gradient noise scale, against linear regression, where it is known in closed form."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from tests.training_core.profiling.profiled import planned as sales
from training_core.examples import Examples
from training_core.feeds.memory import MemoryFeed
from training_core.profiling.noise_scale import (
    Pair,
    draw_pairs,
    noise_along,
    scale_of,
    small_size,
)
from training_core.profiling.planned import Planned
from training_core.settings import TrainingSettings
from training_core.task import Arrays, Preprocessor, RegressionTask

VARIANCES = torch.tensor([4.0, 1.0, 0.25, 0.25])  # of the inputs, which are independent
AWAY = torch.tensor([0.1, -0.2, 0.3, 0.1])  # of the weights from the true ones
NOISE = 2.0  # variance of the label


class Plain:
    """Passes what is there on."""

    columns: ClassVar[list[str]] = []

    def fit(self, train: pd.DataFrame) -> Self:
        return self

    def transform(self, frame: pd.DataFrame) -> Arrays:
        return {}

    def state_dict(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> Self:
        return cls()


class Line(nn.Module):
    """y = w·x."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(AWAY.clone())

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight


class Linear(RegressionTask):
    label = "y"

    def preprocessor(self) -> Preprocessor:
        return Plain()

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Line()


def true_scale() -> float:
    """tr Σ / |G|² of the squared error, from the fourth moments of a normal x (Isserlis).

    With d how far the weights are off and Λ the inputs' covariance: G = 2Λd, and
    tr Σ = 4 [(dᵀΛd + σ²) tr Λ + |Λd|²].
    """
    moved = VARIANCES * AWAY
    inside = float(AWAY @ moved) + NOISE
    trace = 4 * (inside * float(VARIANCES.sum()) + float(moved @ moved))
    return trace / (4 * float(moved @ moved))


def linear(count: int, *, seed: int = 0, batch_size: int = 128) -> Planned:
    """Rows whose true weights are 0, so that the network's are off by `AWAY`."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 4, generator=generator) * VARIANCES.sqrt()
    examples = Examples({"x": x}, torch.randn(count, generator=generator) * math.sqrt(NOISE))
    settings = TrainingSettings(batch_size=batch_size, device="cpu", threads=1)
    return Planned(Linear(), Plain(), MemoryFeed(examples), examples, examples, settings)


def test_it_is_the_one_that_is_known_in_closed_form() -> None:
    training = linear(100_000)
    pairs = draw_pairs(training.trainer(), training.examples, draws=700, seed=0)
    found = scale_of(pairs, step=0, large=128, small=32)
    assert found.error < 0.06 * found.scale
    assert abs(found.scale - true_scale()) < 3 * found.error
    assert true_scale() == pytest.approx(57.1, abs=0.1)


def test_its_standard_error_holds_what_it_says() -> None:
    inside = []
    for seed in range(40):
        training = linear(16 * 128, seed=seed)
        pairs = draw_pairs(training.trainer(), training.examples, draws=16, seed=seed)
        found = scale_of(pairs, step=0, large=128, small=32)
        inside.append(abs(found.scale - true_scale()) < 2 * found.error)
    assert sum(inside) >= 34  # of 40; 95 % would be 38, a jackknife of a quotient has less


def test_gradients_that_are_noise_alone_have_no_scale() -> None:
    pairs = [Pair(large=1.0 + 0.3 * (-1) ** i, small=4.0) for i in range(16)]
    found = scale_of(pairs, step=0, large=128, small=32)  # |G_B|² = |G_b|²/4: all of it noise
    assert not found.known
    assert found.noise > 0


def test_measuring_leaves_no_trace_in_the_training() -> None:
    def weights(draws: int) -> Tensor:
        training = sales(batch_size=64)
        trainer = training.trainer(steps=10)
        from training_core.profiling.planned import take_steps

        def after(step: int) -> None:
            if draws:
                draw_pairs(trainer, training.examples, draws=draws, seed=step)

        take_steps(trainer, 10, after=after)
        return torch.cat([p.detach().flatten() for p in trainer.module.parameters()])

    assert torch.equal(weights(0), weights(2))  # dropout and all


def test_it_is_measured_along_a_training_at_the_planned_batch() -> None:
    training = sales(batch_size=64)
    assert small_size(training, 2000) == 16
    found = noise_along(training, steps=20, instants=3, draws=8)
    assert [each.step for each in found] == [1, 10, 20]
    assert all(each.scale > 0 for each in found)
