"""Plans and settings of the optimiser that are kept to the letter and do not train are named."""

from __future__ import annotations

from typing import Any

import pytest
from check_dynamics_samples import subject

from training_core.checks.dynamics.optimiser_sense import optimiser_sense
from training_core.checks.dynamics.watched import watched
from training_core.checks.machinery.plan_sense import mean_share, odd_of
from training_core.settings import TrainingSettings


def _odd(*, steps: int = 1000, rows: int = 3200, **training: Any) -> str:
    odd = odd_of(TrainingSettings.model_validate(training), steps=steps, rows=rows)
    return "" if odd is None else f"{'fail' if odd.broken else 'warn'}: {odd.message}"


@pytest.mark.parametrize(
    ("training", "said"),
    [
        ({"schedule": {"shape": "step", "milestones": [0.03, 0.06], "warmup": 0.1}},
         "fail: milestones 0.03, 0.06 lie within the warm-up"),
        ({"schedule": {"shape": "step", "milestones": [0.05, 0.5], "milestone_factor": 0.5,
                       "warmup": 0.1}}, "warn: milestones 0.05 lie within the warm-up"),
        ({"schedule": {"shape": "step", "milestones": [0.01, 0.02], "warmup": 0}},
         "warn: the mean rate"),
        ({"schedule": {"shape": "triangular2", "cycles": 40}}, "warn: the mean rate"),
        ({"schedule": {"warmup": 0.95}}, "fail: the rate rises until 95%"),
        ({"schedule": {"shape": "plateau", "plateau_patience": 10}}, "the rate never falls"),
        ({"stopping": {"patience": 12}}, "it never stops one"),
        ({"stopping": {"patience": 3}, "evaluate_every": 10}, "before the rate has risen"),
        ({"stopping": {"plateau": 60}}, "training.stopping.plateau 60 is not shorter"),
    ],
)  # fmt: skip
def test_a_plan_that_contradicts_itself_is_said_to(training: dict[str, Any], said: str) -> None:
    assert said in _odd(**training)


@pytest.mark.parametrize(
    "schedule",
    [
        {}, {"shape": "constant"}, {"shape": "one_cycle"}, {"shape": "inverse_sqrt"},
        {"shape": "triangular2"}, {"shape": "step"}, {"shape": "plateau"},
        {"shape": "step", "milestones": [0.3, 0.6, 0.9]},
    ],
)  # fmt: skip
def test_usual_schedules_make_sense(schedule: dict[str, Any]) -> None:
    assert _odd(schedule=schedule, stopping={"patience": 3}) == ""
    assert _odd(schedule=schedule, steps=48, log_every=1) == ""


def test_a_batch_that_is_larger_than_train_is_said_unless_its_epochs_are_many() -> None:
    assert "batch_size 8192 is more than the 957 rows" in _odd(steps=15, rows=957, batch_size=8192)
    assert _odd(steps=400, rows=60, batch_size=64) == ""


def test_the_mean_rate_of_a_cosine_is_half_its_peak() -> None:
    assert mean_share(TrainingSettings(), steps=4000, after=200) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    ("optimiser", "said"),
    [
        ({}, ""),
        ({"betas": (0.9, 0.95)}, ""),
        ({"betas": (0.0, 0.9)}, ""),
        ({"name": "sgd", "lr": 0.05}, ""),
        ({"betas": (0.999, 0.9)}, "the wrong way round"),
        ({"betas": (0.9999, 0.99999)}, "averages 10000 gradients"),
        ({"name": "sgd", "momentum": 0.9999}, "momentum 0.9999 averages 10000 gradients"),
        ({"weight_decay": 10.0}, "what is learned is forgotten in 33 steps"),
        ({"eps": 1.0}, "steps are that much smaller"),
        ({"name": "sgd", "clip_norm": 1e-6}, "clip_norm 1e-06 scales every step down"),
    ],
)
def test_an_optimiser_that_leaves_little_of_a_step_is_named(
    optimiser: dict[str, Any], said: str
) -> None:
    made = subject("binary", optimiser=optimiser, checks={"input_steps": 12})
    found, advice = optimiser_sense(made, watched(made))
    assert (said in found) if said else not found, found
    assert bool(found) == bool(advice)
