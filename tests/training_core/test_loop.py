"""The training loop in one process: sums, resuming, faults, schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from training_samples import (
    Certain,
    Sales,
    examples_of,
    largest_difference,
    noting,
    trainer,
    weights,
)

from training_core.errors import TrainingFailed
from training_core.evaluation import evaluate
from training_core.examples import Examples
from training_core.loop import Point, Trainer
from training_core.optim import build_optimiser


class _KilledError(Exception):
    """Stands for a process that dies."""


# ---- sums ------------------------------------------------------------------------------------


@pytest.mark.parametrize("accumulation", [2, 3, 8])
def test_accumulation_gives_the_weights_of_the_big_batch(accumulation: int) -> None:
    whole, parts = trainer(), trainer(accumulation=accumulation)
    whole.fit()
    parts.fit()  # 43 rows in batches of 8: the last one has 3
    assert parts.outcome.steps == whole.outcome.steps == 12
    assert largest_difference(weights(whole.model), weights(parts.model)) < 1e-6
    for one, other in zip(whole.outcome.curve, parts.outcome.curve, strict=True):
        assert other.loss == pytest.approx(one.loss, abs=1e-6)
        assert other.gradient_norm == pytest.approx(one.gradient_norm, rel=1e-4)


def test_one_step_is_one_step_of_adamw_on_the_mean_loss() -> None:
    run = trainer(epochs=1, batch_size=64, schedule={"warmup": 0, "shape": "constant"})
    task, train = run.task, run.train
    by_hand = trainer().model
    optimiser = build_optimiser(by_hand, run.settings.optimiser)
    task.loss(by_hand(**train.arrays), train.target).mean().backward()
    norm = nn.utils.clip_grad_norm_(by_hand.parameters(), run.settings.optimiser.clip_norm)
    optimiser.step()
    outcome = run.fit()
    assert largest_difference(weights(run.model), weights(by_hand)) < 1e-6
    assert outcome.curve[0].gradient_norm == pytest.approx(float(norm), rel=1e-5)


def test_training_learns_what_the_inputs_say() -> None:
    run = trainer(count=400, epochs=10, batch_size=32, optimiser={"lr": 0.01})
    outcome = run.fit()
    losses = [metrics["loss"] for _, metrics in outcome.evaluations]
    assert losses[-1] < 0.3 < 0.5 < outcome.curve[0].loss
    assert outcome.stop_reason == "epochs"
    assert outcome.samples == 4000
    assert outcome.samples_per_second > 0


def test_the_logged_loss_is_the_mean_over_its_interval() -> None:
    run = trainer(epochs=1, optimiser={"lr": 1e-12}, log_every=3)
    before = evaluate(run.task, run.model, run.train)["loss"]
    curve = run.fit().curve
    assert [point.step for point in curve] == [3, 6]
    assert (curve[0].loss * 24 + curve[1].loss * 19) / 43 == pytest.approx(before, rel=1e-5)


# ---- resuming --------------------------------------------------------------------------------


def _undisturbed(tmp_path: Path, **changes: Any) -> Trainer:
    run = trainer(tmp_path / "undisturbed", task=Sales(), noting=True, **changes)
    run.fit()
    return run


@pytest.mark.parametrize("accumulation", [1, 2])
def test_a_stopped_run_that_goes_on_ends_with_the_very_same_weights(
    tmp_path: Path, accumulation: int
) -> None:
    whole = _undisturbed(tmp_path, accumulation=accumulation)
    again: dict[str, Any] = {"task": Sales(), "noting": True, "accumulation": accumulation}
    first = trainer(tmp_path / "run", hooks={"should_stop": lambda: True}, **again)
    stopped = first.fit()
    assert (stopped.stop_reason, stopped.steps) == ("asked to stop", 5)
    second = trainer(tmp_path / "run", **again)
    outcome = second.fit()
    assert (outcome.resumed_from, outcome.stop_reason) == (5, "epochs")
    assert largest_difference(weights(whole.model), weights(second.model)) == 0.0
    seen = [*noting(first).trained, *noting(second).trained]
    assert seen == noting(whole).trained
    assert sorted(seen) == sorted([*range(43), *range(43)])
    assert outcome.evaluations == whole.outcome.evaluations
    assert [p.step for p in outcome.curve] == [p.step for p in whole.outcome.curve]


def test_a_run_stopped_again_and_again_loses_and_repeats_nothing(tmp_path: Path) -> None:
    whole = _undisturbed(tmp_path, log_every=1)
    seen: list[int] = []
    for _ in range(20):
        run = trainer(
            tmp_path / "run",
            task=Sales(),
            noting=True,
            log_every=1,
            hooks={"should_stop": lambda: True},
        )
        outcome = run.fit()
        seen += noting(run).trained
        if outcome.stop_reason == "epochs":
            break
    assert seen == noting(whole).trained
    assert largest_difference(weights(whole.model), weights(run.model)) == 0.0
    assert outcome.evaluations == whole.outcome.evaluations  # one fell due where it was stopped


@pytest.mark.parametrize("at", [1, 4, 7, 11])
def test_a_killed_run_goes_on_from_its_newest_checkpoint_to_the_same_weights(
    tmp_path: Path, at: int
) -> None:
    whole = _undisturbed(tmp_path, log_every=1)

    def die(point: Point) -> None:
        if point.step == at:
            raise _KilledError

    hooks = {"on_point": die}
    first = trainer(tmp_path / "run", task=Sales(), noting=True, log_every=1, hooks=hooks)
    with pytest.raises(_KilledError):
        first.fit()
    second = trainer(tmp_path / "run", task=Sales(), noting=True, log_every=1)
    outcome = second.fit()
    assert outcome.resumed_from == (at - 1) // 4 * 4  # a checkpoint every 4 steps
    assert largest_difference(weights(whole.model), weights(second.model)) == 0.0
    assert outcome.evaluations == whole.outcome.evaluations


def test_resuming_a_finished_training_does_nothing(tmp_path: Path) -> None:
    first = trainer(tmp_path, noting=True)
    first.fit()
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    second = trainer(tmp_path, noting=True)
    outcome = second.fit()
    assert (outcome.resumed_from, outcome.steps, outcome.stop_reason) == (12, 12, "epochs")
    assert outcome.evaluations == first.outcome.evaluations
    assert noting(second).trained == noting(second).evaluated == []
    assert largest_difference(weights(first.model), weights(second.model)) == 0.0
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()} == files


def test_the_same_settings_give_the_same_weights_and_another_seed_others() -> None:
    runs = [trainer(task=Sales(), seed=seed) for seed in (0, 0, 1)]
    for run in runs:
        run.fit()
    assert largest_difference(weights(runs[0].model), weights(runs[1].model)) == 0.0
    assert largest_difference(weights(runs[0].model), weights(runs[2].model)) > 0.0


# ---- faults ----------------------------------------------------------------------------------


def _with_broken_rows(count: int) -> Examples:
    _, examples = examples_of(Certain(), 43)
    numbers = examples.arrays["numbers"].clone()
    numbers[:count] = torch.nan
    return Examples({**examples.arrays, "numbers": numbers}, examples.target)


def test_a_step_that_is_not_finite_is_skipped_and_counted(tmp_path: Path) -> None:
    run = trainer(tmp_path, train=_with_broken_rows(1), log_every=1)
    outcome = run.fit()
    assert outcome.skipped_steps == 2  # once an epoch
    assert all(torch.isfinite(value).all() for value in weights(run.model).values())
    assert all(point.loss < 2 for point in outcome.curve)  # and NaN is not
    assert trainer(tmp_path, train=_with_broken_rows(1)).fit().skipped_steps == 2


def test_a_skipped_step_leaves_weights_and_moments_as_they_were() -> None:
    run = trainer(train=_with_broken_rows(43), epochs=1, max_skipped=50)
    before = {name: value.clone() for name, value in weights(run.model).items()}
    run.fit()
    assert largest_difference(before, weights(run.model)) == 0.0
    for state in run.optimiser.state.values():
        assert float(state["step"]) == 0
        assert not state["exp_avg"].any()


def test_too_many_skipped_steps_fail_with_a_hint() -> None:
    run = trainer(train=_with_broken_rows(43), max_skipped=3)
    with pytest.raises(TrainingFailed, match="5 steps up to step 5") as raised:
        run.fit()
    assert "allowed: 3" in str(raised.value)
    assert "hint: lower training.optimiser.lr" in str(raised.value)


def test_a_validation_loss_that_is_not_a_number_fails_and_saves_nothing(tmp_path: Path) -> None:
    run = trainer(tmp_path, validation=_with_broken_rows(1))
    with pytest.raises(TrainingFailed, match="validation loss at step 4 is nan") as raised:
        run.fit()
    assert "hint: " in str(raised.value)
    assert run.checkpoints is not None
    assert run.checkpoints.manifests() == []
