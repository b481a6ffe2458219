"""Going on after a stop, a kill or a divergence: the same weights, samples and log."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import Tensor, nn
from training_samples import (
    Certain,
    Sales,
    largest_difference,
    noting,
    trainer,
    weights,
)

from training_core.errors import ConfigurationError, TrainingFailed
from training_core.loop import Trainer
from training_core.outcome import Point


class _KilledError(Exception):
    """Stands for a process that dies."""


# ---- resuming --------------------------------------------------------------------------------


def _said(curve: list[Point]) -> list[tuple[float, ...]]:
    """What does not depend on time."""
    return [(p.step, p.samples, p.loss, p.lr, p.gradient_norm) for p in curve]


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
    first = trainer(tmp_path / "run", **again)
    first.should_stop = lambda: first.outcome.steps == 6  # between two log lines and evaluations
    stopped = first.fit()
    assert (stopped.stop_reason, stopped.steps) == ("asked to stop", 6)
    second = trainer(tmp_path / "run", **again)
    outcome = second.fit()
    assert (outcome.resumed_from, outcome.stop_reason) == (6, "epochs")
    assert largest_difference(weights(whole.model), weights(second.model)) == 0.0
    seen = [*noting(first).trained, *noting(second).trained]
    assert seen == noting(whole).trained
    assert sorted(seen) == sorted([*range(43), *range(43)])
    assert outcome.evaluations == whole.outcome.evaluations
    assert _said(outcome.curve) == _said(whole.outcome.curve)


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
    first.state.finish()  # its thread lives on, which that of a killed process does not
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


class _Dropping(nn.Module):
    """Leaves layers out as Python's and numpy's random numbers say."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, **arrays: Tensor) -> Tensor:
        outputs: Tensor = self.inner(**arrays)
        if self.training and random.random() < 0.5:
            outputs = outputs * 0.5
        return outputs + float(np.random.normal()) * 0.1 if self.training else outputs


def test_random_numbers_of_python_and_numpy_go_on_too(tmp_path: Path) -> None:
    whole = trainer(model=_Dropping(trainer().model))
    whole.fit()
    first = trainer(tmp_path, model=_Dropping(trainer().model))
    first.should_stop = lambda: first.outcome.steps == 5  # an odd number of normal numbers
    first.fit()
    second = trainer(tmp_path, model=_Dropping(trainer().model))
    second.fit()
    assert largest_difference(weights(whole.model), weights(second.model)) == 0.0


# ---- divergence ------------------------------------------------------------------------------


class _Breaking(Certain):
    """Its loss explodes at some step, as long as the learning rate is what it was."""

    def __init__(self) -> None:
        super().__init__()
        self.run: Trainer | None = None
        self.at, self.until_rate, self.factor = 22, 1.0, 50.0

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        values = super().loss(outputs, target)
        if self.run is not None and self.run.model.training:
            broken = self.run.outcome.steps >= self.at
            if broken and self.run.divergence.lr_scale >= self.until_rate:
                return values * self.factor
        return values


def _breaking(folder: Path, **changes: Any) -> Trainer:
    task = _Breaking()
    for name in ("at", "until_rate", "factor"):
        if name in changes:
            setattr(task, name, changes.pop(name))
    run = trainer(folder, task=task, epochs=6, log_every=3, **changes)
    task.run = run
    return run


def test_a_loss_that_explodes_goes_back_to_a_good_checkpoint_with_a_lower_rate(
    tmp_path: Path,
) -> None:
    run = _breaking(tmp_path)
    outcome = run.fit()
    (rollback,) = outcome.rollbacks
    assert (rollback.step, rollback.to_step, rollback.lr_factor) == (24, 20, 0.5)
    assert "times the median of recent intervals" in rollback.reason
    assert (outcome.steps, outcome.samples, outcome.stop_reason) == (36, 6 * 43, "epochs")
    assert [point.step for point in outcome.curve] == list(range(3, 37, 3))
    usual = trainer(epochs=6, log_every=3).fit().curve
    lowered = [p.lr / u.lr for p, u in zip(outcome.curve, usual, strict=True) if u.lr > 0]
    assert lowered[:6] == [1.0] * 6
    assert lowered[6:] == [0.5] * len(lowered[6:])
    assert max(point.loss for point in outcome.curve) < 2


def test_a_loss_that_explodes_again_and_again_fails_and_says_what_was_seen_and_done(
    tmp_path: Path,
) -> None:
    run = _breaking(tmp_path, until_rate=0.0)
    with pytest.raises(TrainingFailed) as raised:
        run.fit()
    words = str(raised.value)
    assert "back to step 20, learning rate × 0.5 of its schedule" in words
    assert "back to step 20, learning rate × 0.25 of its schedule" in words
    assert "hint: lower training.optimiser.lr" in words
    assert run.checkpoints is not None
    assert max(manifest.step for manifest in run.checkpoints.manifests()) == 20


def test_a_run_killed_after_a_rollback_does_the_same_rollback_again(tmp_path: Path) -> None:
    whole = _breaking(tmp_path / "whole")
    whole.fit()
    first = _breaking(tmp_path / "run")

    def die(point: Point) -> None:
        if first.outcome.rollbacks and point.step == 21:
            raise _KilledError

    first.on_point = die
    with pytest.raises(_KilledError):
        first.fit()
    first.state.finish()  # its thread lives on, which that of a killed process does not
    second = _breaking(tmp_path / "run")
    outcome = second.fit()
    assert outcome.resumed_from == 20
    assert outcome.rollbacks == whole.outcome.rollbacks
    assert _said(outcome.curve) == _said(whole.outcome.curve)
    assert largest_difference(weights(whole.model), weights(second.model)) == 0.0


def test_a_spike_before_the_first_checkpoint_goes_back_to_the_initial_weights(
    tmp_path: Path,
) -> None:
    run = _breaking(tmp_path, at=0, factor=float("nan"), max_skipped=2)
    outcome = run.fit()
    assert [(r.step, r.to_step) for r in outcome.rollbacks] == [(3, 0)]
    calm = trainer(epochs=6, log_every=3, optimiser={"lr": 0.5e-3})
    calm.fit()
    assert largest_difference(weights(run.model), weights(calm.model)) < 1e-6


# ---- stopping --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stopping", "words", "step"),
    [
        ({"max_steps": 7}, "max steps", 7),
        ({"patience": 1, "min_delta": 10.0}, "patience: 1 evaluations", 8),
        ({"gradient_norm": 1e9}, "gradient norm", 5),
        ({"seconds": 1e-9}, "wall time", 5),
    ],
)
def test_each_rule_leaves_its_reason_and_a_checkpoint_of_the_end(
    tmp_path: Path, stopping: dict[str, Any], words: str, step: int
) -> None:
    run = trainer(tmp_path, stopping=stopping)
    outcome = run.fit()
    assert outcome.stop_reason.startswith(words)
    assert outcome.steps == outcome.evaluations[-1][0] == step
    assert run.checkpoints is not None
    assert run.checkpoints.manifests()[-1].step == step
    again = trainer(tmp_path, stopping=stopping).fit()
    assert (again.steps, again.resumed_from, again.stop_reason) == (step, step, outcome.stop_reason)


def test_with_another_limit_a_training_that_its_rule_ended_goes_on(tmp_path: Path) -> None:
    assert trainer(tmp_path, stopping={"max_steps": 4}).fit().steps == 4
    outcome = trainer(tmp_path, stopping={"max_steps": 7}).fit()
    assert (outcome.resumed_from, outcome.steps) == (4, 7)
    outcome = trainer(tmp_path).fit()
    assert (outcome.resumed_from, outcome.steps, outcome.stop_reason) == (7, 12, "epochs")


@pytest.mark.parametrize("other", ["adam", "sgd"])
def test_a_checkpoint_of_another_optimiser_is_refused_by_name(tmp_path: Path, other: str) -> None:
    trainer(tmp_path, stopping={"max_steps": 4}).fit()
    with pytest.raises(ConfigurationError, match="optimiser"):
        trainer(tmp_path, optimiser={"name": other}).fit()
