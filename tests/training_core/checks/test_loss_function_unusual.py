"""The loss by itself: losses that are merely unusual pass, or are a warning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
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
    sentences,
)
from torch import Tensor, nn

from training_core.checks.loss.loss_function import LossFunction
from training_core.task import PADDING, Preprocessor, Task


@pytest.mark.parametrize("task", [YesNo, Three, Two, FarValue, Value, Bars, Words])
def test_a_healthy_task_passes(task: type[Task]) -> None:
    finding = found(LossFunction, task())
    assert finding.verdict == "pass", finding.message


class _Smoothed(Three):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(outputs, target, reduction="none", label_smoothing=0.1)


class _Weighted(Three):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        weight = torch.tensor([1.0, 20.0, 0.3])
        return F.cross_entropy(outputs, target, reduction="none", weight=weight)


class _RareWeighsLittle(Three):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        weight = torch.tensor([1.0, 0.01, 1.0])
        return F.cross_entropy(outputs, target, reduction="none", weight=weight)


class _Focal(Three):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        loss = F.cross_entropy(outputs, target, reduction="none")
        return (1 - torch.exp(-loss)).square() * loss


class _Hinge(Three):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(outputs, target, reduction="none")


class _Brier(Three):
    """Has a ceiling, and a floor of 0."""

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        truth = F.one_hot(target, 3).float()
        return (outputs.softmax(1) - truth).square().sum(1)


class _Summed(Two):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(outputs, target, reduction="none").sum(1)


class _Huber(Value):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(outputs, (target - 5600) / 1800, reduction="none")


class _Absolute(FarValue):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return (outputs - target).abs()


class _Quantile(Value):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        difference = (target - 5600) / 1800 - outputs
        return torch.maximum(0.9 * difference, -0.1 * difference)


class _Poisson(FarValue):
    """Outputs are logarithms."""

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(outputs, target.clamp_min(1) / 1000, reduction="none")

    def predict(self, outputs: Tensor) -> Tensor:
        return outputs.exp() * 1000


class _Rates(FarValue):
    """Outputs are rates, of which a loss knows no logarithm below 0; half of the counts are 0."""

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Changed(super().build_model(preprocessor), F.softplus)

    def target(self, frame: pd.DataFrame) -> Any:
        return np.maximum((super().target(frame) - 5600) / 1800, 0)

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(outputs, target, log_input=False, reduction="none")


class _WithConstant(Three):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs, target) + 0.7


class _MeanOfTokens(Words):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs, target) / (target != PADDING).sum(1)

    def units(self, target: Tensor) -> Tensor | None:
        return None

    def metrics(self, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        return {}


@pytest.mark.parametrize(
    "task",
    [
        _Smoothed, _Weighted, _RareWeighsLittle, _Focal, _Hinge, _Brier, _Summed, _Huber, _Absolute,
        _Quantile, _Poisson, _Rates, _WithConstant, _MeanOfTokens,
    ],
)  # fmt: skip
def test_an_unusual_loss_passes(task: type[Task]) -> None:
    finding = found(LossFunction, task())
    assert finding.verdict == "pass", finding.message


class _PositiveWeight(YesNo):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        weight = torch.tensor(30.0)
        return F.binary_cross_entropy_with_logits(
            outputs, target, reduction="none", pos_weight=weight
        )

    def metrics(self, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        return {"log_loss": self.loss(outputs, target)}


def test_a_log_loss_that_is_the_weighted_loss_is_a_warning() -> None:
    finding = found(LossFunction, _PositiveWeight())
    assert finding.verdict == "warn"
    assert "log_loss is the task's own loss" in finding.message


def test_sequences_without_padding_are_healthy() -> None:
    rows = sentences(200)
    whole = rows[[0 not in tokens for tokens in rows["tokens"]]]
    assert len(whole) > 5
    assert found(LossFunction, Words(), rows=whole).verdict == "pass"


class _Noisy(YesNo):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs + torch.randn(outputs.shape), target)


class _OfProbabilities(YesNo):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        model = super().build_model(preprocessor)
        model.register_forward_hook(lambda module, inputs, outputs: torch.sigmoid(outputs))
        return model

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(outputs, target, reduction="none")

    def predict(self, outputs: Tensor) -> Tensor:
        return outputs


@pytest.mark.parametrize(
    ("task", "words"), [(_Noisy, "draws at random"), (_OfProbabilities, "refuses outputs")]
)
def test_what_may_be_meant_is_a_warning(task: type[Task], words: str) -> None:
    finding = found(LossFunction, task())
    assert finding.verdict == "warn", finding.message
    assert words in finding.message
