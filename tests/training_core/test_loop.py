"""The training loop in one process: sums, resuming, faults, schedule."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from training_samples import (
    CPU,
    Certain,
    Noting,
    Sales,
    examples_of,
    largest_difference,
    trainer,
    weights,
)

from training_core.errors import ConfigurationError, TrainingFailed
from training_core.evaluation import evaluate, outputs_of
from training_core.examples import Examples
from training_core.loop import Point, Trainer
from training_core.optim import build_optimiser, learning_rate
from training_core.parallel import SingleProcess, choose_device, choose_strategy
from training_core.settings import OptimiserSettings, ScheduleSettings


class _KilledError(Exception):
    """Stands for a process that dies."""


def _noting(run: Trainer) -> Noting:
    assert isinstance(run.model, Noting)
    return run.model


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
    seen = [*_noting(first).trained, *_noting(second).trained]
    assert seen == _noting(whole).trained
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
        seen += _noting(run).trained
        if outcome.stop_reason == "epochs":
            break
    assert seen == _noting(whole).trained
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
    assert _noting(second).trained == _noting(second).evaluated == []
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


# ---- precision and device --------------------------------------------------------------------


class _Watching(nn.Module):
    """Notes in what precision its layers compute."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.dtypes: set[torch.dtype] = set()

    def forward(self, **arrays: Tensor) -> Tensor:
        outputs: Tensor = self.inner(**arrays)
        if self.training:
            self.dtypes.add(outputs.dtype)
        return outputs


@pytest.mark.parametrize(
    ("precision", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)]
)
def test_each_precision_trains_on_a_cpu(precision: str, dtype: torch.dtype) -> None:
    model = _Watching(trainer().model)
    run = trainer(
        model=model, count=400, epochs=4, batch_size=32, precision=precision, optimiser={"lr": 0.01}
    )
    outcome = run.fit()
    assert model.dtypes == {dtype}
    assert outcome.evaluations[-1][1]["loss"] < 0.4 < outcome.curve[0].loss
    assert {value.dtype for value in weights(model).values()} == {torch.float32}


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_refused_with_a_way_out() -> None:
    with pytest.raises(ConfigurationError, match=r"training\.device is cuda.*no GPU") as raised:
        choose_device("cuda")
    assert "hint: set training.device to auto" in str(raised.value)
    assert choose_device("auto") == choose_device("cpu") == CPU


def test_without_torchrun_there_is_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    strategy = choose_strategy(CPU)
    assert isinstance(strategy, SingleProcess)
    assert (strategy.rank, strategy.world_size) == (0, 1)


# ---- evaluation ------------------------------------------------------------------------------


@pytest.mark.parametrize("training", [True, False])
def test_evaluation_leaves_the_mode_alone_and_counts_each_example_once(training: bool) -> None:
    task = Sales()  # with dropout: another mode would give other numbers
    preprocessor, examples = examples_of(task, 50, noting=True)
    model = Noting(task.build_model(preprocessor)).train(training)
    first, second = evaluate(task, model, examples), evaluate(task, model, examples)
    assert model.training is training
    assert first == second
    assert model.trained == []
    assert sorted(model.evaluated) == sorted([*range(50), *range(50)])
    outputs = outputs_of(model, examples, device=CPU)
    exact = task.loss(outputs, examples.target).double().mean()
    assert first["loss"] == pytest.approx(float(exact), rel=1e-12)
    assert first["log_loss"] == pytest.approx(first["loss"], rel=1e-12)
    wrong = ((outputs > 0) != (examples.target > 0.5)).double().mean()
    assert first["error"] == pytest.approx(float(wrong), rel=1e-12)


def test_evaluation_leaves_the_mode_alone_even_when_the_model_fails() -> None:
    run = trainer()
    run.model.train()
    with pytest.raises(TypeError):
        outputs_of(run.model, Examples({"unknown": torch.ones(2)}, torch.ones(2)), device=CPU)
    assert run.model.training


def test_validation_during_training_sees_every_row_once_each_time() -> None:
    run = trainer(noting=True)
    outcome = run.fit()
    assert [step for step, _ in outcome.evaluations] == [4, 8, 12]
    assert sorted(_noting(run).evaluated) == sorted([*range(21)] * 3)


# ---- optimiser and schedule ------------------------------------------------------------------


def test_norms_and_biases_get_no_weight_decay_and_frozen_weights_no_update() -> None:
    model = trainer().model
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    model.get_parameter("head.weight").requires_grad_(False)
    optimiser = build_optimiser(model, OptimiserSettings(weight_decay=0.1))
    decay = {
        names[id(parameter)]: group["weight_decay"]
        for group in optimiser.param_groups
        for parameter in group["params"]
    }
    assert decay == {
        "embedding.weight": 0.1,
        "body.0.weight": 0.1,
        "body.0.bias": 0.0,
        "body.1.weight": 0.0,  # of a LayerNorm
        "body.1.bias": 0.0,
        "head.bias": 0.0,
    }


def _rates(steps: int, **schedule: Any) -> list[float]:
    return [
        learning_rate(
            step, steps=steps, peak=2.0, schedule=ScheduleSettings.model_validate(schedule)
        )
        for step in range(steps)
    ]


@pytest.mark.parametrize("shape", ["constant", "linear", "cosine"])
def test_the_rate_rises_evenly_to_its_peak(shape: str) -> None:
    rates = _rates(100, shape=shape, warmup=0.1)
    rises = [b - a for a, b in pairwise([0.0, *rates[:11]])]
    assert rises == pytest.approx([2 / 11] * 11)
    assert rates[10] == max(rates) == 2.0


def test_after_the_peak_each_shape_goes_its_way_to_the_end() -> None:
    assert set(_rates(50, shape="constant", warmup=0)) == {2.0}
    linear = _rates(51, shape="linear", warmup=0, final=0.1)
    assert [b - a for a, b in pairwise(linear)] == pytest.approx([-1.8 / 50] * 50)
    cosine = _rates(51, shape="cosine", warmup=0, final=0.1)
    assert cosine[25] == pytest.approx(1.1)
    assert all(a >= b for a, b in pairwise(cosine))
    assert cosine[5] > linear[5]
    assert cosine[-1] == pytest.approx(0.2)
    assert linear[-1] == pytest.approx(0.2)


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("shape", ["constant", "linear", "cosine"])
def test_the_shortest_runs_have_rates_too(steps: int, shape: str) -> None:
    rates = _rates(steps, shape=shape, warmup=0.4)
    assert all(0 <= rate <= 2 for rate in rates)
    assert rates[0] > 0


def test_the_trainer_follows_the_schedule_to_its_end() -> None:
    run = trainer(log_every=1, schedule={"shape": "linear", "warmup": 0.25, "final": 0.5})
    rates = [point.lr for point in run.fit().curve]
    schedule = run.settings.schedule
    assert rates == [learning_rate(i, steps=12, peak=1e-3, schedule=schedule) for i in range(12)]
    assert rates[-1] == pytest.approx(0.5e-3)
