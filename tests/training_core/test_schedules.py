"""Learning rates by step: torch's where torch has the same, and what each shape promises."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, get_args

import pytest
import torch
from pydantic import ValidationError
from torch.optim import lr_scheduler

from training_core.optim.schedules import Plateau, Schedule, make_schedule
from training_core.optim.settings import OptimiserSettings, ScheduleSettings
from training_core.optim.shapes import Rate

PEAK, MOMENTUM = 2.0, 0.95
SHAPES = get_args(ScheduleSettings.model_fields["shape"].annotation)
PURE = [shape for shape in SHAPES if shape != "plateau"]


def schedule_of(steps: int, **settings: Any) -> Schedule:
    return make_schedule(
        ScheduleSettings.model_validate(settings),
        OptimiserSettings(name="sgd", lr=PEAK, momentum=MOMENTUM),
        steps=steps,
    )


def rates(steps: int, **settings: Any) -> list[float]:
    schedule = schedule_of(steps, **settings)
    return [schedule.at(step).lr for step in range(steps)]


def torchs(
    steps: int, build: Callable[[torch.optim.Optimizer], lr_scheduler.LRScheduler]
) -> tuple[list[float], list[float]]:
    """Rates and momenta of a scheduler of torch."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.SGD([parameter], lr=PEAK, momentum=MOMENTUM)
    scheduler = build(optimiser)
    found = []
    for step in range(steps):
        group = optimiser.param_groups[0]
        found.append((group["lr"], group["momentum"]))
        optimiser.step()
        if step < steps - 1:
            scheduler.step()
    lrs, momenta = zip(*found, strict=True)
    return list(lrs), list(momenta)


# ---- torch has the same ----------------------------------------------------------------------


@pytest.mark.parametrize("steps", [10, 37, 100])
@pytest.mark.parametrize(
    ("settings", "build"),
    [
        ({"shape": "constant"}, lambda o, n: lr_scheduler.ConstantLR(o, factor=1.0)),
        (
            {"shape": "linear", "final": 0.1},
            lambda o, n: lr_scheduler.LinearLR(o, 1.0, 0.1, total_iters=n - 1),
        ),
        (
            {"shape": "cosine", "final": 0.1},
            lambda o, n: lr_scheduler.CosineAnnealingLR(o, n - 1, eta_min=0.1 * PEAK),
        ),
        (
            {"shape": "step", "milestones": (0.3, 0.5), "milestone_factor": 0.2},
            lambda o, n: lr_scheduler.MultiStepLR(o, [round(0.3 * n), round(0.5 * n)], 0.2),
        ),
        (
            {"shape": "step", "milestones": (0.2, 0.4, 0.6, 0.8)},
            lambda o, n: lr_scheduler.MultiStepLR(o, [round(i * n / 5) for i in (1, 2, 3, 4)], 0.1),
        ),
        (
            {"shape": "triangular", "final": 0.1, "cycles": 3},
            lambda o, n: lr_scheduler.CyclicLR(
                o, 0.1 * PEAK, PEAK, step_size_up=n / 6, cycle_momentum=False
            ),
        ),
        (
            {"shape": "triangular2", "final": 0.1, "cycles": 2},
            lambda o, n: lr_scheduler.CyclicLR(
                o, 0.1 * PEAK, PEAK, step_size_up=n / 4, mode="triangular2", cycle_momentum=False
            ),
        ),
    ],
)
def test_without_warmup_a_shape_is_torchs_own(
    settings: dict[str, Any], build: Callable[[Any, int], lr_scheduler.LRScheduler], steps: int
) -> None:
    expected, _ = torchs(steps, lambda optimiser: build(optimiser, steps))
    assert rates(steps, warmup=0, **settings) == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_a_step_every_tenth_of_the_run_is_torchs_step_lr() -> None:
    expected, _ = torchs(100, lambda o: lr_scheduler.StepLR(o, 10, gamma=0.5))
    shares = tuple(i / 10 for i in range(1, 10))
    ours = rates(100, shape="step", warmup=0, milestones=shares, milestone_factor=0.5)
    assert ours == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("steps", [10, 37, 100])
def test_one_cycle_is_torchs_own_momentum_included(steps: int) -> None:
    lrs, momenta = torchs(
        steps,
        lambda o: lr_scheduler.OneCycleLR(
            o, PEAK, total_steps=steps, base_momentum=0.85, max_momentum=MOMENTUM
        ),
    )
    schedule = schedule_of(steps, shape="one_cycle", final=1 / 25e4)
    ours = [schedule.at(step) for step in range(steps)]
    assert [rate.lr for rate in ours] == pytest.approx(lrs, rel=1e-9, abs=1e-14)
    assert [rate.momentum for rate in ours] == pytest.approx(momenta, rel=1e-12)


def test_plateau_is_torchs_own() -> None:
    losses = [3.0, 2.0, 2.5, 2.0, 2.1, 1.9, 1.9, 1.9, float("nan"), 5.0, 5.0, 1.0, 1.0]
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=PEAK)
    theirs = lr_scheduler.ReduceLROnPlateau(
        optimiser, factor=0.5, patience=1, threshold=0, min_lr=0.3
    )
    ours = schedule_of(100, shape="plateau", warmup=0, plateau_patience=2, final=0.15)
    for step, loss in enumerate(losses):
        theirs.step(loss)
        ours.observe(loss)
        assert ours.at(step).lr == pytest.approx(optimiser.param_groups[0]["lr"], rel=1e-12)
    assert ours.at(50).lr == pytest.approx(0.3)


# ---- warm-up ---------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape != "one_cycle"])
def test_the_rate_rises_evenly_to_its_peak_right_after_the_warmup(shape: str) -> None:
    found = rates(100, shape=shape, warmup=0.1)
    rises = [b - a for a, b in pairwise([0.0, *found[:11]])]
    assert rises == pytest.approx([PEAK / 11] * 11)
    assert found[10] == max(found) == PEAK


def test_the_rise_of_one_cycle_is_its_warmup() -> None:
    found = rates(101, shape="one_cycle", rising=0.25, warmup=0.1)
    assert found == rates(101, shape="one_cycle", rising=0.25, warmup=0)
    assert found[0] == pytest.approx(PEAK / 25)
    assert found.index(max(found)) in (24, 25)
    assert all(a < b for a, b in pairwise(found[:25]))
    assert all(a > b for a, b in pairwise(found[25:]))


@pytest.mark.parametrize(("shape", "second"), [("triangular", 1.0), ("triangular2", 0.5)])
def test_the_warmup_of_a_cyclic_shape_is_its_first_rise(shape: str, second: float) -> None:
    # 10 steps up, then 90 in three halves: down, up, down
    found = rates(100, shape=shape, warmup=0.1, cycles=2, final=0.1)
    assert found[10] == PEAK
    assert found[40] == pytest.approx(0.1 * PEAK)
    assert found[70] == pytest.approx(0.1 * PEAK + 0.9 * PEAK * second)
    assert found[99] == pytest.approx(0.1 * PEAK + 0.9 * PEAK * second / 30)


# ---- what a shape promises -------------------------------------------------------------------


def test_the_inverse_square_root_halves_when_four_times_as_many_steps_are_done() -> None:
    found = rates(1000, shape="inverse_sqrt", warmup=0.024, final=0.2)
    assert found[24] == PEAK
    assert found[99] == pytest.approx(PEAK / 2)
    assert found[399] == pytest.approx(PEAK / 4)
    assert found[999] == pytest.approx(0.2 * PEAK)  # not below the lowest


@pytest.mark.parametrize("shape", ["linear", "cosine", "one_cycle"])
def test_the_last_step_is_at_the_final_rate(shape: str) -> None:
    assert rates(50, shape=shape, final=0.25)[-1] == pytest.approx(0.25 * PEAK)
    assert rates(50, shape=shape)[-1] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_shortest_runs_have_rates_too(steps: int, shape: str) -> None:
    found = rates(steps, shape=shape, warmup=0.4)
    assert all(0 <= rate <= PEAK for rate in found)
    assert found[0] > 0


@pytest.mark.parametrize("shape", PURE)
def test_a_rate_depends_on_the_step_alone(shape: str) -> None:
    schedule = schedule_of(60, shape=shape)
    forward = [schedule.at(step) for step in range(60)]
    schedule.observe(1.0)
    assert [schedule.at(step) for step in reversed(range(60))] == forward[::-1]
    assert schedule.state_dict() == {}
    assert max(rate.lr for rate in forward) <= PEAK


@pytest.mark.parametrize(
    ("optimiser", "high"),
    [
        (OptimiserSettings(name="sgd", momentum=0.93), 0.93),
        (OptimiserSettings(name="muon", momentum=0.95), 0.95),
        (OptimiserSettings(name="adamw", betas=(0.9, 0.99)), 0.9),
        (OptimiserSettings(name="adamw", betas=(0.5, 0.99)), 0.5),  # below the lowest: stays
        (OptimiserSettings(name="sgd", momentum=0), None),
        (OptimiserSettings(name="adafactor"), None),
    ],
)
def test_one_cycle_moves_the_momentum_that_the_optimiser_has(
    optimiser: OptimiserSettings, high: float | None
) -> None:
    schedule = make_schedule(ScheduleSettings(shape="one_cycle"), optimiser, steps=101)
    momenta = [schedule.at(step).momentum for step in range(101)]
    if high is None:
        assert set(momenta) == {None}
        return
    known = [momentum for momentum in momenta if momentum is not None]
    assert len(known) == 101
    assert known[0] == known[-1] == max(known) == pytest.approx(high)
    assert min(known) == pytest.approx(min(high, 0.85), rel=1e-3)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape != "one_cycle"])
def test_no_other_shape_moves_the_momentum(shape: str) -> None:
    assert {schedule_of(20, shape=shape).at(step).momentum for step in range(20)} == {None}


def test_a_scaled_rate_keeps_its_momentum() -> None:
    assert Rate(0.4, 0.9).scaled(0.5) == Rate(0.2, 0.9)


# ---- plateau ---------------------------------------------------------------------------------


def test_a_plateau_goes_on_where_its_state_was_taken() -> None:
    first = schedule_of(100, shape="plateau", plateau_patience=2)
    for loss in (1.0, 0.8, 0.9, 0.9, 0.9):
        first.observe(loss)
    second = schedule_of(100, shape="plateau", plateau_patience=2)
    assert isinstance(second, Plateau)
    second.load_state_dict(first.state_dict())
    assert second.at(50) == first.at(50) == Rate(PEAK / 2)
    second.observe(0.85)  # the second in a row that is not below 0.8
    assert second.at(50) == Rate(PEAK / 4)
    assert first.state_dict() == {"best": 0.8, "waited": 1, "factor": 0.5}


def test_a_plateau_during_the_warmup_does_not_lift_the_rate_to_its_floor() -> None:
    schedule = schedule_of(100, shape="plateau", warmup=0.5, final=0.5)
    assert schedule.at(0).lr == pytest.approx(PEAK / 51)


# ---- settings --------------------------------------------------------------------------------


@pytest.mark.parametrize("milestones", [(0.5, 0.5), (0.7, 0.2), (0.0,), (0.5, 1.0)])
def test_milestones_that_do_not_rise_are_refused(milestones: tuple[float, ...]) -> None:
    with pytest.raises(ValidationError, match="milestones must rise, between 0 and 1, not"):
        ScheduleSettings(milestones=milestones)


def test_a_beta_of_one_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"betas must be at least 0 and below 1, not \[1.0"):
        OptimiserSettings(betas=(1.0, 0.999))
