"""Sanity checks pass healthy tasks and name the bugs that were planted in others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from training_samples import Certain, Network, Sales, examples_of, rows

from training_core.evaluation import outputs_of
from training_core.examples import Examples
from training_core.sanity import (
    CPU,
    Finding,
    input_independent,
    learns_from_inputs,
    loss_at_initialisation,
    overfit_one_batch,
    without_information,
)
from training_core.settings import CheckSettings, TrainingSettings
from training_core.tabular import TabularPreprocessor
from training_core.task import BinaryTask, Preprocessor

CHECKS = CheckSettings(overfit_steps=250, input_steps=60)
TRAINING = TrainingSettings(batch_size=64)


def _check(
    name: str, task: BinaryTask, *, examples: Examples | None = None, **checks: Any
) -> Finding:
    preprocessor, own = examples_of(task, 400)
    examples = examples or own

    def build() -> nn.Module:
        return task.build_model(preprocessor)

    settings = CHECKS.model_copy(update=checks)
    if name == "loss_at_initialisation":
        return loss_at_initialisation(task, build, examples, settings)
    run = {"overfit_one_batch": overfit_one_batch, "learns_from_inputs": learns_from_inputs}[name]
    finding = run(task, build, examples, settings, TRAINING)
    assert finding.curves
    return finding


ALL = ["loss_at_initialisation", "overfit_one_batch", "learns_from_inputs"]


class _PriorKnown(Sales):
    """Its last bias is set from the prior."""

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        model = Network(preprocessor)
        nn.init.constant_(model.head.bias, -0.2)
        return model


class _HeavyDropout(Sales):
    dropout = 0.6


@pytest.mark.parametrize("task", [Sales, Certain, _PriorKnown, _HeavyDropout])
@pytest.mark.parametrize("name", ALL)
def test_a_healthy_task_passes(name: str, task: type[BinaryTask]) -> None:
    finding = _check(name, task())
    assert finding.verdict == "pass", finding.message
    assert finding.name == name


@pytest.mark.parametrize("name", ALL)
def test_a_rare_label_is_healthy_too(name: str) -> None:
    task = Sales()
    frame = rows(3000)
    frame = frame[(frame["bought"] == 0) | (frame.index % 12 == 0)]
    frame = frame.reset_index(drop=True)
    examples = Examples.from_frame(task, task.preprocessor().fit(frame), frame)
    assert float(examples.target.mean()) < 0.15
    finding = _check(name, task, examples=examples, input_steps=150)
    assert finding.verdict == "pass", finding.message


@pytest.mark.parametrize("name", ALL)
def test_a_check_leaves_no_trace_in_the_examples_and_says_the_same_again(name: str) -> None:
    _, examples = examples_of(Sales(), 400)
    before = {key: array.clone() for key, array in examples.arrays.items()}
    torch.manual_seed(1)
    first = _check(name, Sales(), examples=examples)
    torch.manual_seed(2)
    assert _check(name, Sales(), examples=examples) == first
    assert all(torch.equal(before[key], array) for key, array in examples.arrays.items())


# ---- planted bugs ----------------------------------------------------------------------------


def test_labels_that_do_not_belong_to_their_rows_are_found() -> None:
    _, examples = examples_of(Sales(), 400)
    mixed = torch.randperm(400, generator=torch.Generator().manual_seed(5))
    wrong = Examples(examples.arrays, examples.target[mixed])
    finding = _check("learns_from_inputs", Sales(), examples=wrong)
    assert finding.verdict == "fail"
    assert "joined by the right key" in finding.message


class _Changed(nn.Module):
    """A network whose outputs a bug changes."""

    def __init__(self, inner: nn.Module, change: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.inner, self.change = inner, change

    def forward(self, **arrays: Tensor) -> Tensor:
        return self.change(self.inner(**arrays))


class _DetachedGraph(Certain):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return _Changed(super().build_model(preprocessor), Tensor.detach)


class _LossWithoutOutputs(Certain):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(torch.zeros_like(outputs), target)


class _LossTimesZero(Certain):
    """Has a gradient, which is zero."""

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs * 0, target)


class _FrozenNetwork(Certain):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        model = super().build_model(preprocessor)
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name == "head.bias")
        return model


@pytest.mark.parametrize(
    "task", [_DetachedGraph, _LossWithoutOutputs, _LossTimesZero, _FrozenNetwork]
)
def test_a_loss_that_does_not_move_is_found(task: type[BinaryTask]) -> None:
    finding = _check("overfit_one_batch", task())
    assert finding.verdict == "fail"
    assert "detached graph, frozen parameters, or a loss that does not use" in finding.message


class _BlindNetwork(Certain):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return _Changed(
            super().build_model(preprocessor), lambda outputs: outputs.mean().expand(len(outputs))
        )


def test_a_network_whose_inputs_do_not_reach_the_outputs_is_found() -> None:
    for name in ("overfit_one_batch", "learns_from_inputs"):
        assert _check(name, _BlindNetwork()).verdict == "fail"


class _DoubleSigmoid(Certain):
    """Returns a probability where a logit is meant."""

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return _Changed(super().build_model(preprocessor), torch.sigmoid)


def test_an_output_that_is_squashed_twice_is_found() -> None:
    findings = {name: _check(name, _DoubleSigmoid()) for name in ALL}
    overfit = findings["overfit_one_batch"]
    assert overfit.verdict == "fail"
    assert "squashed twice" in overfit.message


class _WrongScale(Certain):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return _Changed(super().build_model(preprocessor), lambda outputs: outputs * 50)


class _NotANumber(Certain):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return _Changed(super().build_model(preprocessor), lambda outputs: (outputs * 0).log() * 0)


def test_a_wrong_scale_at_initialisation_is_found() -> None:
    finding = _check("loss_at_initialisation", _WrongScale())
    assert finding.verdict == "fail"
    assert finding.measured is not None
    assert finding.limit is not None
    assert finding.measured > finding.limit
    assert "scale of the inputs and of the last layer" in finding.message


@pytest.mark.parametrize("name", ALL)
def test_a_loss_that_is_not_a_number_is_found(name: str) -> None:
    finding = _check(name, _NotANumber())
    assert finding.verdict == "fail"
    assert finding.measured is None


class _Leaking(Certain):
    """Has its label among the features, and looks it up."""

    def preprocessor(self) -> TabularPreprocessor:
        return TabularPreprocessor(categories=["shop"], numbers=["bought"])

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        class Lookup(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.scale = nn.Parameter(torch.tensor(5.0))

            def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
                return numbers[:, 0] * self.scale

        return Lookup()


class _WrongSign(Certain):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return -super().loss(outputs, target)


@pytest.mark.parametrize("task", [_Leaking, _WrongSign])
def test_a_loss_that_is_too_good_without_training_is_found(task: type[BinaryTask]) -> None:
    finding = _check("loss_at_initialisation", task())
    assert finding.verdict == "fail"
    assert "is the label among the features" in finding.message


def test_a_learning_rate_that_diverges_is_not_called_healthy() -> None:
    task = Certain()
    preprocessor, examples = examples_of(task, 400)
    training = TrainingSettings.model_validate({"batch_size": 64, "optimiser": {"lr": 1e4}})
    finding = overfit_one_batch(
        task, lambda: task.build_model(preprocessor), examples, CHECKS, training
    )
    assert finding.verdict == "fail"


def test_rows_that_differ_only_in_their_label_are_no_bug() -> None:
    """What no network can separate is taken off the limit."""
    _, examples = examples_of(Certain(), 400)
    same = {name: array[:1].expand_as(array).clone() for name, array in examples.arrays.items()}
    finding = _check("overfit_one_batch", Certain(), examples=Examples(same, examples.target))
    assert finding.verdict == "pass"
    assert finding.measured == pytest.approx(0.693, abs=0.06)


# ---- the input-independent baseline ----------------------------------------------------------


def test_the_input_independent_baseline_learns_the_labels_rate_and_nothing_else() -> None:
    task = Certain()
    preprocessor, examples = examples_of(task, 400)
    model = task.build_model(preprocessor)
    before = [parameter.clone() for parameter in model.parameters()]
    training = TrainingSettings.model_validate({"batch_size": 128, "optimiser": {"lr": 0.02}})
    blind = input_independent(task, model, examples, steps=100, training=training)
    outputs = outputs_of(blind, without_information(examples), device=CPU)
    assert float(outputs.std()) < 1e-5
    rate = float(examples.target.mean())
    assert float(task.predict(outputs)[0]) == pytest.approx(rate, abs=0.05)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
