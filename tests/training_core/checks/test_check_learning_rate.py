"""The planned learning rate is judged by short trainings about it."""

from __future__ import annotations

import pytest
from check_dynamics_samples import HEALTHY, Binary, Table, random_rows, subject
from torch import nn

from training_core.checks.dynamics.learning_rate import LearningRate
from training_core.checks.runner import make
from training_core.task import Preprocessor


@pytest.mark.parametrize("name", ["binary", "price"])
def test_a_healthy_rate_passes_and_a_hundredth_and_a_hundredfold_of_it_fail(name: str) -> None:
    planned = HEALTHY[name][2]["optimiser"]["lr"]
    assert make(LearningRate(), subject(name)).verdict == "pass"
    low = make(LearningRate(), subject(name, optimiser={"lr": planned / 100}))
    high = make(LearningRate(), subject(name, optimiser={"lr": planned * 100}))
    assert (low.verdict, high.verdict) == ("fail", "fail")
    assert "too low" in low.message
    assert "raise" in low.advice
    assert "too high" in high.message or "not finite" in high.message
    assert "lower" in high.advice


def test_sgd_with_momentum_is_judged_alike() -> None:
    verdicts = [
        make(LearningRate(), subject("tags", optimiser={"lr": rate})).verdict
        for rate in (0.0005, 0.05, 5.0)
    ]
    assert verdicts == ["fail", "pass", "fail"]


@pytest.mark.parametrize("name", ["binary", "images"])
def test_a_short_plan_with_a_moderate_rate_is_warned_of_at_most(name: str) -> None:
    short = subject(name, epochs=3, optimiser={"lr": 0.001})
    assert short.steps < 40
    assert make(LearningRate(), short).verdict in ("pass", "warn")


def test_where_labels_are_noise_no_rate_fails() -> None:
    finding = make(LearningRate(), subject(rows=random_rows()))
    assert finding.verdict in ("pass", "warn")
    assert len(finding.curves) == len(finding.table) >= 3


class _Linear(Binary):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        model = Table(8)
        model.layers = nn.Sequential(nn.Linear(8, 1))
        return model


def test_a_linear_model_that_would_need_more_steps_is_warned_of_at_most() -> None:
    finding = make(LearningRate(), subject(task=_Linear(), optimiser={"lr": 0.001}))
    assert finding.verdict == "warn"
    assert "train for longer" in finding.advice
