"""The loss at initialisation: healthy tasks of every kind pass, what theory excludes does not."""

from __future__ import annotations

import math

import pytest
import torch
from check_loss_samples import (
    Bars,
    Changed,
    FarValue,
    Three,
    Two,
    Value,
    Words,
    YesNo,
    found,
    table,
)
from torch import Tensor, nn

from training_core.checks.loss.initial_loss import InitialLoss
from training_core.task import Preprocessor, Task


@pytest.mark.parametrize("task", [YesNo, Three, Two, Value, Bars, Words])
def test_a_healthy_task_passes(task: type[Task]) -> None:
    finding = found(InitialLoss, task())
    assert finding.verdict == "pass", finding.message


def test_a_rare_label_is_healthy() -> None:
    rows = table(4000)
    rows = rows[(rows["yes"] == 0) | (rows.index % 40 == 0)]
    assert rows["yes"].mean() < 0.03
    assert found(InitialLoss, YesNo(), rows=rows).verdict == "pass"


def test_a_target_far_from_zero_is_a_warning_that_names_the_bias() -> None:
    finding = found(InitialLoss, FarValue())
    assert finding.verdict == "warn"
    assert "training.bias_from_prior" in finding.advice


@pytest.mark.parametrize("task", [YesNo, Three, Two, FarValue, Value, Words])
def test_with_the_bias_set_from_the_prior_the_loss_is_the_priors(task: type[Task]) -> None:
    rows = table(4000)
    rows = rows[(rows["yes"] == 0) | (rows.index % 20 == 0)]
    finding = found(InitialLoss, task(), rows=None if task is Words else rows, bias_from_prior=True)
    assert finding.verdict == "pass", finding.message
    assert "its bias is set" in finding.message
    if task is YesNo:
        rate = rows["yes"].mean()
        entropy = -rate * math.log(rate) - (1 - rate) * math.log(1 - rate)
        assert finding.measured == pytest.approx(entropy, abs=0.05)


class _Sure(YesNo):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Changed(super().build_model(preprocessor), lambda outputs: outputs * 50)


class _SureOfClasses(Three):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Changed(super().build_model(preprocessor), lambda outputs: outputs * 50)


@pytest.mark.parametrize("task", [_Sure, _SureOfClasses])
def test_outputs_that_are_sure_of_themselves_are_found(task: type[Task]) -> None:
    finding = found(InitialLoss, task())
    assert finding.verdict == "fail"
    assert "sure of itself" in finding.message
    assert finding.measured is not None
    assert finding.limit is not None
    assert finding.measured > finding.limit


class _NotANumber(YesNo):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Changed(super().build_model(preprocessor), lambda outputs: (outputs * 0).log() * 0)


def test_a_loss_that_is_not_a_number_is_found() -> None:
    finding = found(InitialLoss, _NotANumber())
    assert finding.verdict == "fail"
    assert finding.measured is None


class _WrongSign(YesNo):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return -super().loss(outputs, target)


def test_a_loss_of_the_wrong_sign_is_found() -> None:
    finding = found(InitialLoss, _WrongSign())
    assert finding.verdict == "fail"
    assert "without end" in finding.message


class _KnowsLabel(YesNo):
    """Has its label among the features, and looks it up."""

    scale = 8.0

    def preprocessor(self):  # type: ignore[no-untyped-def]
        from check_loss_samples import Columns

        return Columns(numbers=["yes", "x5"])

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        scale = self.scale

        class Lookup(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.last = nn.Linear(1, 1)

            def forward(self, numbers: Tensor) -> Tensor:
                said: Tensor = scale * (numbers[:, 0] - 0.5) + self.last(numbers[:, 1:])[:, 0]
                return said

        return Lookup()


def test_a_network_that_knows_labels_before_training_is_found() -> None:
    finding = found(InitialLoss, _KnowsLabel())
    assert finding.verdict == "fail"
    assert "is the label among the features" in finding.advice


class _HalfKnowsLabel(_KnowsLabel):
    scale = 0.6


def test_a_little_knowledge_whatever_the_seed_is_a_warning() -> None:
    finding = found(InitialLoss, _HalfKnowsLabel())
    assert finding.verdict == "warn", finding.message
    assert "whatever the seed" in finding.message


def test_it_says_the_same_again_and_leaves_the_examples_alone() -> None:
    from check_loss_samples import subject_of

    from training_core.checks.runner import make

    subject = subject_of(Three())
    before = subject.examples.clone()
    first = make(InitialLoss(), subject)
    torch.manual_seed(3)
    second = make(InitialLoss(), subject)
    assert (first.message, first.measured) == (second.message, second.measured)
    assert torch.equal(before.arrays["numbers"], subject.examples.arrays["numbers"])
