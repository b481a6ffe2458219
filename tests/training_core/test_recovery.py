"""Divergence: what is noticed, what is done about it, and what is said when nothing helps."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from training_core.errors import TrainingFailed
from training_core.outcome import Point, Rollback
from training_core.stopping.divergence import Divergence
from training_core.stopping.settings import RecoverySettings

HEALTHY = [2.0, 1.2, 1.0, 0.9, 0.85, 0.8]


def divergence(*, max_skipped: int = 5, precision: str = "fp32", **limits: Any) -> Divergence:
    settings = RecoverySettings.model_validate(limits)
    return Divergence(settings, max_skipped=max_skipped, precision=precision)


def point(step: int, loss: float, *, skipped: int = 0, lr: float = 0.1) -> Point:
    return Point(step, loss, lr, 1.5, 1000.0, skipped_steps=skipped)


def judged(watch: Divergence, losses: list[float], *, start: int = 1) -> list[str]:
    """What is said of log intervals of 20 steps with these losses."""
    return [watch.judge(point(20 * n, loss)) for n, loss in enumerate(losses, start)]


def saved(watch: Divergence) -> dict[str, Any]:
    """The state as a checkpoint holds it: plain data, without NaN."""
    state: dict[str, Any] = json.loads(json.dumps(watch.state_dict(), allow_nan=False))
    return state


def test_a_healthy_training_is_left_alone_and_its_last_clean_step_known() -> None:
    watch = divergence()
    assert judged(watch, HEALTHY) == [""] * 6
    assert (watch.last_clean, watch.lr_scale, watch.rollbacks) == (120, 1.0, [])


def test_a_spike_is_told_from_the_median_of_recent_intervals() -> None:
    watch = divergence()
    judged(watch, HEALTHY)
    assert watch.judge(point(140, 4.74)) == ""  # the median is 0.95
    assert watch.judge(point(160, 5.2)) == (
        "the loss up to step 160 is 5.2, 5.2 times the median of recent intervals (1)"
    )
    assert watch.last_clean == 140
    assert judged(divergence(spike=0), [*HEALTHY, 1e9]) == [""] * 7


def test_the_first_intervals_are_no_measure_of_a_spike() -> None:
    assert judged(divergence(), [1.0, 90.0, 0.9]) == [""] * 3


def test_noise_of_a_loss_near_zero_and_negative_losses_are_no_spikes() -> None:
    assert not any(judged(divergence(), [2.0, *[1e-4] * 12, 9e-4, 0.19]))
    assert judged(divergence(), [2.0, *[1e-4] * 12, 0.21])[-1] != ""
    assert not any(judged(divergence(), [-1.0, -2.0, -3.0, -3.0, -0.1, 0.5]))


def test_a_resumed_run_judges_as_the_undisturbed_one_would() -> None:
    def judged_with_kills(last: float) -> list[str]:
        said = []
        state = saved(divergence())
        for n, loss in enumerate([2.0, *[1e-4] * 12, last], 1):
            watch = divergence()
            watch.load_state_dict(state)
            said.append(watch.judge(point(20 * n, loss)))
            state = saved(watch)
        return said

    for last in (9e-4, 0.21):
        undisturbed = judged(divergence(), [2.0, *[1e-4] * 12, last])
        assert judged_with_kills(last) == undisturbed
        assert bool(undisturbed[-1]) == (last == 0.21)


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_though_no_step_was_skipped_is_divergence(loss: float) -> None:
    assert divergence().judge(point(20, loss)) == f"the loss up to step 20 is {loss}"


def test_an_interval_of_skipped_steps_only_counts_them_and_is_not_clean() -> None:
    watch = divergence(max_skipped=5)
    assert watch.judge(point(20, 1.0)) == ""
    assert watch.judge(point(22, math.nan, skipped=2)) == ""
    assert watch.last_clean == 20


def test_skipped_steps_are_counted_since_the_last_clean_interval() -> None:
    watch = divergence(max_skipped=5)
    totals = [3, 5, 5, 8, 10]  # the third interval is clean
    said = [watch.judge(point(20 * n, 1.0, skipped=total)) for n, total in enumerate(totals, 1)]
    assert said == [""] * 5
    assert watch.last_clean == 60
    assert watch.judge(point(120, 1.0, skipped=11)) == (
        "6 steps up to step 120 had gradients that are not finite (allowed: 5)"
    )


def test_the_rare_skips_of_fp16_leave_an_interval_clean() -> None:
    watch = divergence(max_skipped=2)
    for n in range(1, 30):
        assert watch.judge(point(2000 * n, 1.0, skipped=n)) == ""
    assert watch.last_clean == 58_000


def test_a_validation_loss_that_is_not_finite_is_divergence() -> None:
    watch = divergence(attempts=1)
    assert watch.judge_evaluation(40, 0.7) == ""
    assert watch.judge_evaluation(40, math.nan) == "the validation loss at step 40 is nan"
    watch.rewind(None, step=40, to_step=0, reason="it is nan")
    with pytest.raises(TrainingFailed, match="the validation loss at step 40 is inf"):
        watch.judge_evaluation(40, math.inf)


def test_each_rollback_lowers_the_rate_and_is_recorded() -> None:
    watch = divergence(lr_factor=0.5)
    judged(watch, HEALTHY)
    state = saved(watch)
    why = watch.judge(point(140, 99.0))
    first = watch.rewind(state, step=140, to_step=120, reason=why)
    assert first == Rollback(step=140, to_step=120, reason=why, lr_factor=0.5)
    why = watch.judge(point(140, 98.0))
    watch.rewind(state, step=140, to_step=120, reason=why)
    assert (watch.lr_scale, watch.last_clean, len(watch.rollbacks)) == (0.25, 120, 2)


def test_when_attempts_are_spent_the_error_is_a_diagnosis() -> None:
    watch = divergence(attempts=1, precision="fp16")
    judged(watch, HEALTHY)
    state = saved(watch)
    why = watch.judge(point(140, 99.0))
    watch.rewind(state, step=140, to_step=120, reason=why)
    with pytest.raises(TrainingFailed) as raised:
        watch.judge(point(140, 88.0, lr=0.05, skipped=3))
    said = raised.value.what
    assert said.startswith("training diverged: the loss up to step 140 is 88, 92.6 times")
    assert "step 120: loss 0.8, gradient norm 1.5, learning rate 0.1\n" in said
    assert "step 140: loss 88, gradient norm 1.5, learning rate 0.05, 3 skipped" in said
    assert "back to step 120, learning rate × 0.5 of its schedule" in said
    assert "precision: fp16" in said
    assert "lower training.optimiser.lr" in raised.value.hint
    assert "training.precision: bf16" in raised.value.hint


def test_without_attempts_the_first_divergence_fails_with_hints_that_fit() -> None:
    with pytest.raises(TrainingFailed, match=r"recovery\.attempts is 0") as raised:
        divergence(attempts=0).judge(point(20, math.nan))
    assert "log of 0" in raised.value.hint
    assert "no checkpoint to go back to" in str(divergence().failure("it did"))


def train(kills: set[int]) -> tuple[list[tuple[int, float]], list[Rollback], float]:
    """A training that explodes at step 70 unless its rate is below 0.3 of the schedule's.

    Its loss is a function of (step, rate), as a reproducible training's is. It saves at every 20th
    step after judging it, drops what is after the last clean step when it goes back, and is killed
    where its total of steps done, replays included, is one of `kills`.
    """
    checkpoints: dict[int, dict[str, Any]] = {0: saved(divergence(attempts=3))}
    curve: dict[int, float] = {}
    done, step, watch = 0, 0, divergence(attempts=3)
    while step < 120:
        step += 10
        done += 1
        loss = 50.0 if step >= 70 and watch.lr_scale > 0.3 else 1.0 + watch.lr_scale / step
        if why := watch.judge(point(step, loss)):
            checkpoints = {s: c for s, c in checkpoints.items() if s <= watch.last_clean}
            back = max(checkpoints)
            watch.rewind(checkpoints[back], step=step, to_step=back, reason=why)
            step = back
        else:
            curve[step] = loss
            if step % 20 == 0:
                checkpoints[step] = saved(watch)
        if done in kills:
            step = max(checkpoints)
            watch = divergence(attempts=3)
            watch.load_state_dict(checkpoints[step])
    return sorted(curve.items()), watch.rollbacks, watch.lr_scale


def test_a_replay_comes_out_the_same_however_often_it_is_killed() -> None:
    undisturbed = train(set())
    assert undisturbed[2] == 0.25
    assert [rollback.to_step for rollback in undisturbed[1]] == [60, 60]
    for kill in range(1, 25):
        assert train({kill}) == undisturbed
    assert train({7, 9, 12, 13, 20}) == undisturbed
