"""The training loop in one process: sums, resuming, faults, schedule."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from training_samples import (
    Certain,
    examples_of,
    largest_difference,
    trainer,
    weights,
)

from training_core.errors import TrainingFailed
from training_core.evaluation import evaluate
from training_core.examples import Examples
from training_core.optim.optimisers import build_optimisers
from training_core.outcome import Outcome, Point

# ---- threads ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "during"),
    [({"deterministic": "topology"}, 1), ({"threads": 3}, 3), ({}, 2)],
)
def test_training_has_the_threads_that_the_settings_fix_and_gives_them_back(
    changes: dict[str, Any], during: int
) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        run, seen = trainer(**changes), set[int]()
        run.model.register_forward_pre_hook(lambda *_: seen.add(torch.get_num_threads()))
        run.fit()
        assert seen == {during}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


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
    task, (_, train) = run.task, examples_of(Certain(), 43)
    by_hand = trainer().model
    (optimiser,) = build_optimisers(by_hand, run.settings.optimiser)
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
    before = evaluate(run.task, run.model, examples_of(Certain(), 43)[1])["loss"]
    curve = run.fit().curve
    assert [point.step for point in curve] == [3, 6]
    assert (curve[0].loss * 24 + curve[1].loss * 19) / 43 == pytest.approx(before, rel=1e-5)


def test_a_long_curve_is_thinned_out_to_its_end() -> None:
    outcome = Outcome()
    for step in range(1, 10_001):
        outcome.note(Point(step, 0.0, 0.0, 0.0, 0.0))
    steps = [point.step for point in outcome.curve]
    assert 250 <= len(steps) < 500
    assert steps == sorted(steps)
    assert steps[-1] > 9_936
    assert max(b - a for a, b in pairwise(steps)) <= 64


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
    losses = [point.loss for point in outcome.curve]
    assert sum(math.isnan(loss) for loss in losses) == 2  # nothing is known of these two steps
    assert all(loss < 2 for loss in losses if not math.isnan(loss))
    assert trainer(tmp_path, train=_with_broken_rows(1)).fit().skipped_steps == 2


def test_a_skipped_step_leaves_weights_and_moments_as_they_were() -> None:
    run = trainer(train=_with_broken_rows(43), epochs=1, max_skipped=50)
    before = {name: value.clone() for name, value in weights(run.model).items()}
    run.fit()
    assert largest_difference(before, weights(run.model)) == 0.0
    for state in run.update.optimisers[0].state.values():
        assert float(state["step"]) == 0
        assert not state["exp_avg"].any()


def test_too_many_skipped_steps_fail_with_a_diagnosis(tmp_path: Path) -> None:
    run = trainer(tmp_path, train=_with_broken_rows(43), max_skipped=3, recovery={"attempts": 1})
    with pytest.raises(TrainingFailed, match="5 steps up to step 5") as raised:
        run.fit()
    assert "allowed: 3" in str(raised.value)
    assert "back to step 0, learning rate × 0.5 of its schedule" in str(raised.value)
    assert "hint: lower training.optimiser.lr" in str(raised.value)


def test_without_checkpoints_there_is_nothing_to_go_back_to() -> None:
    run = trainer(train=_with_broken_rows(43), max_skipped=3)
    with pytest.raises(TrainingFailed, match="there is no checkpoint to go back to"):
        run.fit()


def test_a_validation_loss_that_is_not_a_number_fails_and_saves_nothing(tmp_path: Path) -> None:
    run = trainer(tmp_path, validation=_with_broken_rows(1))
    with pytest.raises(TrainingFailed, match="validation loss at step 4 is nan") as raised:
        run.fit()
    assert "hint: " in str(raised.value)
    assert run.checkpoints is not None
    assert [manifest.step for manifest in run.checkpoints.manifests()] == [0]  # where it began


# ---- an end before the planned one -------------------------------------------------------------


def test_a_training_that_ends_early_has_what_the_whole_one_had_there(tmp_path: Path) -> None:
    whole = trainer(tmp_path / "whole", evaluate_every=4, checkpoints={"keep_last": 9})
    whole.fit()
    part = trainer(tmp_path / "part", evaluate_every=4, hooks={"until": 8})
    assert part.fit().steps == 8
    assert part.outcome.stop_reason == "epochs"
    assert part.checkpoints is not None
    assert whole.checkpoints is not None
    found = {}
    for run in (whole, part):
        assert run.checkpoints is not None
        (manifest,) = (each for each in run.checkpoints.manifests() if each.step == 8)
        found[run] = run.checkpoints.model_state(manifest)
    assert largest_difference(found[whole], found[part]) == 0
    again = trainer(tmp_path / "part", evaluate_every=4, hooks={"until": 8})
    assert (again.fit().steps, again.outcome.resumed_from) == (8, 8)
