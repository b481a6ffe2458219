"""One batch by heart: healthy networks do, those too small are told apart from broken ones."""

from __future__ import annotations

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
    table,
)
from torch import Tensor, nn

from training_core.checks.loss.one_batch import OneBatch
from training_core.task import Preprocessor, Task


@pytest.mark.parametrize("task", [YesNo, Three, Two, Value, Bars, Words])
def test_a_healthy_task_passes(task: type[Task]) -> None:
    finding = found(OneBatch, task())
    assert finding.verdict == "pass", finding.message
    assert finding.curves


class _HeavyDropout(Three):
    dropout = 0.7


class _NoiseOfItsOwn(Three):
    """Draws in train mode with nothing that could be switched off."""

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        inner = super().build_model(preprocessor)

        class Noisy(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.inner = inner

            def forward(self, numbers: Tensor) -> Tensor:
                said: Tensor = self.inner(F.dropout(numbers, 0.5, self.training))
                return said

        return Noisy()


class _Smoothed(Three):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(outputs, target, reduction="none", label_smoothing=0.2)


@pytest.mark.parametrize("task", [_HeavyDropout, _NoiseOfItsOwn, _Smoothed])
def test_what_keeps_a_loss_up_on_purpose_is_no_bug(task: type[Task]) -> None:
    finding = found(OneBatch, task())
    assert finding.verdict == "pass", finding.message


def test_a_rare_label_is_balanced_first() -> None:
    rows = table(3000)
    rows = rows[(rows["yes"] == 0) | (rows.index % 40 == 0)]
    finding = found(OneBatch, YesNo(), rows=rows)
    assert finding.verdict == "pass", finding.message
    assert "constant loses 0.6" in finding.message


@pytest.mark.parametrize("task", [YesNo, Three, FarValue])
def test_rows_that_differ_only_in_their_label_are_no_bug(task: type[Task]) -> None:
    rows = table(300)
    rows.loc[:, [f"x{i}" for i in range(6)]] = 1.0
    assert found(OneBatch, task(), rows=rows).verdict in ("pass", "warn")


def test_a_target_of_any_scale_is_at_most_a_warning() -> None:
    finding = found(OneBatch, FarValue())
    assert finding.verdict == "warn"
    assert "standardise the target" in finding.advice


class _Line(YesNo):
    """Six weights cannot learn 32 rows by heart."""

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        class Line(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.head = nn.Linear(6, 1)

            def forward(self, numbers: Tensor) -> Tensor:
                said: Tensor = self.head(numbers).squeeze(1)
                return said

        return Line()


class _LineWithLarger(_Line):
    def larger(self, factor: int) -> Task:
        return YesNo()


def test_a_network_that_is_too_small_is_a_warning() -> None:
    rows = table(300)
    rows["yes"] = (rows["yes"] != (rows.index % 4 == 0)).astype(float)  # a quarter flipped
    assert found(OneBatch, _Line(), rows=rows).verdict == "warn"
    finding = found(OneBatch, _LineWithLarger(), rows=rows)
    assert finding.verdict == "warn"
    assert "too small" in finding.message


# ---- broken ------------------------------------------------------------------------------------


class _DetachedGraph(Three):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Changed(super().build_model(preprocessor), Tensor.detach)


class _LossTimesZero(Three):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs * 0, target)


class _Frozen(Value):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        model = super().build_model(preprocessor)
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name == "head.bias")
        return model


class _AllFrozen(Value):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return super().build_model(preprocessor).requires_grad_(False)


class _Blind(Three):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Changed(
            super().build_model(preprocessor), lambda outputs: outputs.mean(0).expand_as(outputs)
        )


class _OutOfReach(YesNo):
    """The network is dead; a wider one would not be."""

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Changed(super().build_model(preprocessor), lambda outputs: (outputs - 20).relu())

    def larger(self, factor: int) -> Task:
        return YesNo()


class _Squashed(YesNo):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Changed(super().build_model(preprocessor), torch.sigmoid)


class _SquashedClasses(Three):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Changed(super().build_model(preprocessor), lambda outputs: outputs.softmax(1))


class _SquashedByLoss(YesNo):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(torch.sigmoid(outputs), target)


class _Shuffles(Value):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs, target[torch.randperm(len(target))])


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (_DetachedGraph, "no gradient"),
        (_LossTimesZero, "no more than the labels' average"),
        (_Frozen, "parameters are frozen"),
        (_AllFrozen, "are frozen"),
        (_Blind, "the same for every row"),
        (_OutOfReach, "no more than the labels' average"),
        (_Squashed, "squashed before the loss"),
        (_SquashedClasses, "squashed before the loss"),
        (_SquashedByLoss, "stalls"),
        (_Shuffles, "no more than the labels' average"),
    ],
)
def test_what_cannot_be_learned_by_heart_is_named(task: type[Task], words: str) -> None:
    finding = found(OneBatch, task(), checks={"overfit_steps": 200})
    assert finding.verdict == "fail", finding.message
    assert words in finding.message


def test_a_learning_rate_that_diverges_is_found() -> None:
    finding = found(OneBatch, YesNo(), optimiser={"lr": 1e5, "name": "sgd", "clip_norm": 0})
    assert finding.verdict == "fail"
    assert "grows" in finding.message
