"""Precision, devices, evaluation during training, and the learning rate."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from training_samples import (
    CPU,
    Noting,
    Sales,
    examples_of,
    noting,
    settings,
    trainer,
    weights,
)

from training_core.errors import ConfigurationError
from training_core.evaluation import evaluate, outputs_of
from training_core.examples import Examples
from training_core.optim.schedules import make_schedule
from training_core.parallel.choose import choose_device, choose_strategy
from training_core.parallel.single import SingleProcess

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


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_tf32_is_refused_where_there_is_none() -> None:
    with pytest.raises(ConfigurationError, match="tf32, but a CPU has none") as raised:
        trainer(precision="tf32")
    assert "hint: set training.precision to fp32" in str(raised.value)


def test_fp16_scales_the_loss_and_learns_on_a_cpu() -> None:
    run = trainer(
        model=None, count=400, epochs=4, batch_size=32, precision="fp16", optimiser={"lr": 0.01}
    )
    outcome = run.fit()
    assert run.precision.scaler.is_enabled()
    assert outcome.evaluations[-1][1]["loss"] < 0.4 < outcome.curve[0].loss
    assert outcome.skipped_steps < 10  # until the first scale has come down


def test_without_torchrun_there_is_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    strategy = choose_strategy(CPU, settings())
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
    assert sorted(noting(run).evaluated) == sorted([*range(21)] * 3)


# ---- schedule -------------------------------------------------------------------------------


def test_the_trainer_follows_the_schedule_to_its_end() -> None:
    run = trainer(log_every=1, schedule={"shape": "linear", "warmup": 0.25, "final": 0.5})
    rates = [point.lr for point in run.fit().curve]
    schedule = make_schedule(run.settings.schedule, run.settings.optimiser, steps=12)
    assert rates == [schedule.at(step).lr for step in range(12)]
    assert rates[-1] == pytest.approx(0.5e-3)
