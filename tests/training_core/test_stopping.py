"""When a training ends before its epochs are done, and why it says so."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from pydantic import ValidationError

from training_core.outcome import Point
from training_core.stopping.rules import StoppingRules
from training_core.stopping.settings import StoppingSettings


def rules(processes: int = 1, **limits: Any) -> StoppingRules:
    return StoppingRules(StoppingSettings.model_validate(limits), processes=processes)


def point(step: int, loss: float = 1.0, *, gradient_norm: float = 1.0) -> Point:
    return Point(step, loss, 0.1, gradient_norm, 1000.0)


def intervals(these: StoppingRules, *losses: float, start: int = 1) -> list[str]:
    """What the rules say at each of these log intervals of ten steps and one second."""
    return [
        these.at_interval(point(10 * n, loss), wall_seconds=n)
        for n, loss in enumerate(losses, start)
    ]


def evaluations(these: StoppingRules, *losses: float, start: int = 1) -> list[str]:
    return [these.at_evaluation(100 * n, loss) for n, loss in enumerate(losses, start)]


def test_without_limits_nothing_ends_a_training() -> None:
    never = rules()
    assert not any(intervals(never, *[1.0] * 50, math.nan, 0.0))
    assert not any(evaluations(never, *[1.0] * 50, math.nan))
    assert never.at_interval(point(9, gradient_norm=0.0), wall_seconds=1e9) == ""


def test_patience_counts_evaluations_since_the_best_and_names_it() -> None:
    patient = rules(patience=3)
    said = evaluations(patient, 0.5, 0.4012, 0.45, 0.41, 0.40119, 0.5, 0.41, 0.4012)
    assert said[:7] == [""] * 7
    assert said[7] == "patience: 3 evaluations without a loss better than 0.4012 (step 500)"
    assert patient.reason == said[7]


def test_better_means_better_by_min_delta() -> None:
    strict = rules(patience=2, min_delta=0.01)
    assert evaluations(strict, 0.5, 0.495, 0.491)[-1] == (
        "patience: 2 evaluations without a loss better than 0.5 by 0.01 (step 100)"
    )
    assert not any(evaluations(rules(patience=2, min_delta=0.01), 0.5, 0.495, 0.48, 0.47))


def test_losses_that_are_not_finite_are_never_better() -> None:
    assert evaluations(rules(patience=2), math.nan, -math.inf)[-1] == (
        "patience: 2 evaluations without a finite loss"
    )


def test_a_plateau_is_of_the_training_loss() -> None:
    flat = rules(plateau=3)
    assert not any(evaluations(flat, 0.3, 0.3, 0.3, 0.3, 0.3))
    said = intervals(flat, 0.5, 0.3, 0.31, 0.3, 0.3)
    assert said[:4] == [""] * 4
    assert said[4] == ("plateau: 3 log intervals without a training loss better than 0.3 (step 20)")


def test_small_gradients_end_a_training_but_those_of_skipped_steps_do_not() -> None:
    small = rules(gradient_norm=0.01)
    assert small.at_interval(point(10, gradient_norm=0.01), wall_seconds=1) == ""
    assert small.at_interval(point(20, math.nan, gradient_norm=0.0), wall_seconds=2) == ""
    assert small.at_interval(point(30, gradient_norm=0.0042), wall_seconds=3) == (
        "gradient norm: 0.0042 at step 30, below 0.01"
    )


def test_max_steps_is_the_last_step_and_the_reason() -> None:
    short = rules(max_steps=50)
    assert intervals(short, *[1.0] * 5)[-2:] == [
        "",
        "max steps: 50 of the 50 allowed are done",
    ]


def test_wall_time_and_cost_add_up_over_restarts() -> None:
    timed, paid = rules(seconds=100), rules(processes=4, budget=2, price_per_hour=6)
    for _ in range(2):
        for each in (timed, paid):
            assert each.at_interval(point(10), wall_seconds=20) == ""
            assert each.at_interval(point(20), wall_seconds=45) == ""
            each.load_state_dict(json.loads(json.dumps(each.state_dict())))
    assert timed.seconds == 90
    assert timed.at_interval(point(30), wall_seconds=10) == (
        "wall time: 100 s over all restarts, of 100 s allowed"
    )
    assert paid.at_interval(point(30), wall_seconds=209) == ""  # 299 s
    assert paid.at_interval(point(40), wall_seconds=211) == (
        "budget: 2.01 of 2 spent in 0.08 h (at 6 an hour for each of 4 processes)"
    )


def test_cost_counts_the_processes_that_ran_at_the_time() -> None:
    one = rules(processes=1, budget=10, price_per_hour=1)
    one.at_interval(point(10), wall_seconds=3600)
    four = rules(processes=4, budget=10, price_per_hour=1)
    four.load_state_dict(one.state_dict())
    four.at_interval(point(20), wall_seconds=3600)
    assert four.cost == 1 + 4


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_resumed_run_stops_where_the_undisturbed_one_does(cut: int) -> None:
    losses = [0.9, 0.8, 0.7, 0.71, 0.69, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7]
    limits = {"patience": 4, "plateau": 6}

    def stops(parts: list[list[float]]) -> list[tuple[int, str]]:
        these, step, seen = rules(**limits), 0, []
        for part in parts:
            again = rules(**limits)
            again.load_state_dict(json.loads(json.dumps(these.state_dict(), allow_nan=False)))
            these = again
            for loss in part:
                step += 1
                these.at_interval(point(step, loss), wall_seconds=step)
                reason = these.at_evaluation(step, loss)
                seen.append((step, reason))
        return seen

    whole = stops([losses])
    assert next(step for step, reason in whole if reason) == 9
    assert stops([losses[:cut], losses[cut:]]) == whole


def test_a_run_killed_between_its_last_checkpoint_and_its_end_still_has_its_reason() -> None:
    patient = rules(patience=1)
    evaluations(patient, 0.5, 0.6)
    resumed = rules(patience=1)
    resumed.load_state_dict(patient.state_dict())
    assert resumed.reason == patient.reason != ""


def test_going_back_forgets_losses_but_not_the_time_spent() -> None:
    these = rules(patience=3, seconds=100)
    intervals(these, 0.5)
    evaluations(these, 0.5, 0.6)
    saved = these.state_dict()
    intervals(these, 0.9, 0.9, start=2)
    evaluations(these, 0.9, start=3)
    these.rewind(saved)
    assert (these.seconds, these.reason) == (3, "")
    assert evaluations(these, 0.7, 0.8, start=3) == [
        "",
        "patience: 3 evaluations without a loss better than 0.5 (step 100)",
    ]
    assert these.at_interval(point(30, 0.9), wall_seconds=50) != ""
    assert these.seconds == 50


def test_a_budget_without_a_price_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"budget is 5, but nothing has a price: give"):
        StoppingSettings(budget=5)
