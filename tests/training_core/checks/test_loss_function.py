"""The loss by itself: broken losses, metrics and predictions are named."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from check_loss_samples import FarValue, Three, Two, Value, Words, YesNo, found
from torch import Tensor, nn

from training_core.checks.loss.loss_function import LossFunction
from training_core.task import PADDING, Preprocessor, Task


class _Broadcast(FarValue):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        model = super().build_model(preprocessor)
        model.outputs = 0  # type: ignore[assignment]  # so nothing is squeezed: [N, 1]
        return model


class _BroadcastInside(YesNo):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        every = F.binary_cross_entropy_with_logits(
            outputs[:, None].expand(-1, len(target)), target.expand(len(outputs), -1),
            reduction="none",
        )  # fmt: skip
        return every.mean(1)


class _Mean(YesNo):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs, target).mean().expand(len(outputs))


class _WrongAxis(Three):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(outputs.log_softmax(0), target, reduction="none")


class _PredictsOverRows(Three):
    def predict(self, outputs: Tensor) -> Tensor:
        return outputs.softmax(0)


class _Shuffles(Three):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs, target[torch.randperm(len(target))])


class _WrongSign(Two):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return -super().loss(outputs, target)


class _Detached(Value):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs.detach(), target)


class _Zeros(Three):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs * 0, target)


class _TwiceSigmoid(YesNo):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(torch.sigmoid(outputs), target)


class _TwiceSoftmax(Three):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs.softmax(1), target)


class _TwiceSoftmaxOfWords(Words):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs.softmax(2), target)


class _Clipped(Three):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs, target).clamp(max=2.0)


class _ShiftedLabel(Three):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs, (target + 1) % 3)


class _PredictsOpposite(YesNo):
    def predict(self, outputs: Tensor) -> Tensor:
        return torch.sigmoid(-outputs)


class _NotScaledBack(Value):
    def predict(self, outputs: Tensor) -> Tensor:
        return outputs


class _WrongType(Three):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs, target.int())


class _WritesTarget(Words):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        target[target == 3] = PADDING
        return super().loss(outputs, target)


class _CountsPadding(Words):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        tokens = torch.where(target == PADDING, 0, target)
        losses = F.cross_entropy(outputs.flatten(0, 1), tokens.flatten(), reduction="none")
        return losses.view(target.shape).sum(1)


class _UnitsWithPadding(Words):
    def units(self, target: Tensor) -> Tensor:
        return torch.full((len(target),), 100.0)


class _DividedTwice(Words):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs, target) / (target != PADDING).sum(1).clamp_min(1)


class _ClassIgnored(Three):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(outputs, target, reduction="none", ignore_index=1)


class _ClassOfNoWeight(Three):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        weight = torch.tensor([1.0, 0.0, 1.0])
        return F.cross_entropy(outputs, target, reduction="none", weight=weight)


class _Accuracy(Three):
    def metrics(self, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        return {"error": (outputs.argmax(1) == target).float()}


class _WrongError(YesNo):
    def metrics(self, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        return {"error": (target >= 0.5).float()}


class _MetricOfBatch(YesNo):
    def metrics(self, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        return {"rank": (outputs > outputs.median()).float()}


class _OnlyPositives(YesNo):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs, target) * target


class _SmoothedAway(Three):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(outputs, target, reduction="none", label_smoothing=0.9)


class _WithoutLogarithm(Three):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(outputs.softmax(1), target, reduction="none")


class _PredictsLogits(YesNo):
    def predict(self, outputs: Tensor) -> Tensor:
        return outputs


class _PredictsClasses(Three):
    def predict(self, outputs: Tensor) -> Tensor:
        return outputs.argmax(1)


class _PaddingInUnits(Words):
    def units(self, target: Tensor) -> Tensor:
        return torch.full((len(target),), float(target.shape[1]))


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (_SmoothedAway, "next to nothing to learn"),
        (_WithoutLogarithm, "not minus its logarithm"),
        (_PredictsLogits, "no probabilities"),
        (_PredictsClasses, "not the probability of each"),
        (_PaddingInUnits, "units says"),
        (_Broadcast, "broadcasts to every pair"),
        (_BroadcastInside, "the loss of an example depends on the others"),
        (_Mean, "the loss of an example depends on the others"),
        (_WrongAxis, "the loss of an example depends on the others"),
        (_PredictsOverRows, "the prediction of an example depends on the others"),
        (_Shuffles, "the loss of an example depends on the others"),
        (_MetricOfBatch, "the metric rank of an example depends on the others"),
        (_WrongSign, "wrong sign"),
        (_Detached, "does not depend on the outputs"),
        (_Zeros, "the same whatever the outputs"),
        (_TwiceSigmoid, "squashes them twice"),
        (_TwiceSoftmax, "squashes them twice"),
        (_TwiceSoftmaxOfWords, "squashes them twice"),
        (_Clipped, "the loss is flat where outputs are confidently wrong"),
        (_ShiftedLabel, "mean different things"),
        (_PredictsOpposite, "predict is turned round"),
        (_NotScaledBack, "mean different things"),
        (_WrongType, "their types float32 and int64"),
        (_WritesTarget, "writes into the target"),
        (_CountsPadding, "of padding"),
        (_UnitsWithPadding, "units says"),
        (_DividedTwice, "divided by units once more"),
        (_Accuracy, "counts what is right"),
        (_WrongError, "not what the predictions say"),
        (_OnlyPositives, "they teach nothing"),
        (_ClassIgnored, "they teach nothing"),
        (_ClassOfNoWeight, "they teach nothing"),
    ],
)
def test_a_broken_loss_is_named(task: type[Task], words: str) -> None:
    finding = found(LossFunction, task())
    assert finding.verdict == "fail", finding.message
    assert words in finding.message
    assert finding.advice
