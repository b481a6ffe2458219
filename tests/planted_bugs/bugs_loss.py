"""Losses that say something else than how wrong an output is, and metrics likewise."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from tests.planted_bugs import (
    healthy_bag_of_words,
    healthy_categories,
    healthy_digits,
    healthy_language_model,
    healthy_multilabel,
    healthy_odd_scale,
    healthy_regression,
    healthy_residual,
    healthy_sgd,
    healthy_transformer,
)
from tests.planted_bugs.planting import Theme
from tests.planted_bugs.preprocessors import padded

LOSS = Theme("Loss and metrics")
KARPATHY = "Karpathy 2018, most common neural net mistakes: softmaxed outputs into a loss of logits"


@LOSS.task(
    healthy_residual.HEALTHY,
    "Outputs are squashed by a sigmoid before a loss that squashes them again.",
    found_by=("loss_function", "one_batch", "initial_loss"),
    seen=KARPATHY,
)
class SigmoidTwice(healthy_residual.Churn):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs.sigmoid(), target)


@LOSS.task(
    healthy_categories.HEALTHY,
    "Outputs go through softmax before cross_entropy, which has one of its own.",
    found_by=("loss_function", "one_batch", "initial_loss"),
    seen=KARPATHY,
)
class SoftmaxTwice(healthy_categories.Plans):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs.softmax(1), target)


@LOSS.task(
    healthy_digits.HEALTHY,
    "nll_loss is given probabilities and not their logarithms.",
    found_by=("loss_function", "initial_loss"),
    seen="a question asked often on discuss.pytorch.org",
)
class LogarithmForgotten(healthy_digits.Digits):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(outputs.softmax(1), target, reduction="none")


@LOSS.task(
    healthy_transformer.HEALTHY,
    "The loss is clipped where gradients were meant: hard examples teach nothing.",
    found_by=("loss_function", "one_batch"),
    seen="Karpathy 2019: clipping the loss instead of the gradients",
)
class LossClipped(healthy_transformer.Messages):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs, target).clamp(max=0.8)


@LOSS.task(
    healthy_categories.HEALTHY,
    "The softmax goes over the batch and not over the classes.",
    found_by=("loss_function",),
    seen="Karpathy 2018, axes mixed up; PyTorch warns of an implicit dim for it",
)
class SoftmaxOverTheBatch(healthy_categories.Plans):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(outputs.log_softmax(0), target, reduction="none")


@LOSS.task(
    healthy_multilabel.HEALTHY,
    "The mean is taken over the rows and not over the labels: each row's loss is the batch's.",
    found_by=("loss_function", "evaluation_equals_plain_code"),
    seen="Humbatova et al. 2020, wrong loss function calculation",
)
class MeanOverTheRows(healthy_multilabel.Faults):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        losses = F.binary_cross_entropy_with_logits(outputs, target, reduction="none")
        return losses.mean(0).mean().expand(len(target))


@LOSS.task(
    healthy_regression.HEALTHY,
    "Outputs [N, 1] meet a target [N]: every prediction is held against every target.",
    found_by=("loss_function", "one_batch"),
    seen="TensorFlow and PyTorch forums; PyTorch's mse_loss warns of it",
)
class ShapesBroadcast(healthy_regression.Rent):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return (outputs.unsqueeze(1) - target).square().mean(1)


@LOSS.task(
    healthy_sgd.HEALTHY,
    "The loss has the wrong sign: a score that is best where it is highest is minimised.",
    found_by=("loss_function", "one_batch", "loss_falls"),
    seen="Humbatova et al. 2020, wrong loss function calculation",
)
class SignOfTheLoss(healthy_sgd.Accepted):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return -super().loss(outputs.clamp(-10, 10), target)


@LOSS.task(
    healthy_digits.HEALTHY,
    "Labels are smoothed so much that hardly anything is left of them.",
    found_by=("loss_function", "one_batch"),
)
class LabelsSmoothedAway(healthy_digits.Digits):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(outputs, target, reduction="none", label_smoothing=0.95)


@LOSS.task(
    healthy_categories.HEALTHY,
    "Class 0 was taken for padding, and is ignored: who takes the basic plan teaches nothing.",
    found_by=("loss_function",),
    seen="torch: cross_entropy(ignore_index=0), copied from a model of language",
)
class FirstClassIgnored(healthy_categories.Plans):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(outputs, target, reduction="none", ignore_index=0)


@LOSS.task(
    healthy_language_model.HEALTHY,
    "Padding is a target like any other: the network learns to predict it.",
    found_by=("padding_counts_for_nothing", "loss_function"),
    seen="Humbatova et al. 2020, missing masking of invalid values",
)
class PaddingInTheLoss(healthy_language_model.Sentences):
    def target(self, frame: pd.DataFrame) -> npt.NDArray[np.int64]:
        texts = (list(map(healthy_language_model.ALPHABET.index, t)) for t in frame[self.label])
        return padded(texts, healthy_language_model.LENGTH, value=26)


@LOSS.task(
    healthy_language_model.HEALTHY,
    "A sentence's loss is already a mean over its characters, and is divided by them again.",
    found_by=("loss_function", "initial_loss", "padding_counts_for_nothing"),
    seen="gradient accumulation in Hugging Face Transformers before October 2024, the other way",
)
class MeanTakenTwice(healthy_language_model.Sentences):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs, target) / (target >= 0).sum(1)


@LOSS.task(
    healthy_language_model.HEALTHY,
    "Units count the padding too, so a sentence weighs less the shorter it is.",
    found_by=("padding_counts_for_nothing", "loss_function", "initial_loss"),
)
class PaddingInTheUnits(healthy_language_model.Sentences):
    def units(self, target: Tensor) -> Tensor:
        return target.new_full((len(target),), target.shape[1]).float()


@LOSS.task(
    healthy_digits.HEALTHY,
    "The metric named error is the accuracy.",
    found_by=("evaluation_equals_plain_code", "loss_function"),
    seen="Humbatova et al. 2020, wrong metric",
)
class AccuracyNamedError(healthy_digits.Digits):
    def metrics(self, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        said = super().metrics(outputs, target)
        return {**said, "error": 1 - said["error"]}


@LOSS.task(
    healthy_bag_of_words.HEALTHY,
    "The prediction is the logit and not the probability.",
    found_by=("loss_function", "evaluation_equals_plain_code", "package_equals_model"),
    seen="Schoop et al. 2021, UMLAUT: missing softmax",
)
class PredictionIsTheLogit(healthy_bag_of_words.Reviews):
    def predict(self, outputs: Tensor) -> Tensor:
        return outputs.float()


@LOSS.task(
    healthy_odd_scale.HEALTHY,
    "Learned in deviations, predicted without putting mean and deviation back.",
    found_by=("loss_function", "evaluation_equals_plain_code"),
    seen="Humbatova et al. 2020, missing postprocessing",
)
class ScaleNotPutBack(healthy_odd_scale.Price):
    def predict(self, outputs: Tensor) -> Tensor:
        return outputs.float()


@LOSS.task(
    healthy_odd_scale.HEALTHY,
    "A target of some thousands is learned as it is: the network never gets there.",
    found_by=("initial_loss", "one_batch", "loss_falls", "inputs_before_network"),
    seen="Humbatova et al. 2020, missing normalisation",
    warns=True,
)
class TargetNotScaled(healthy_odd_scale.Price):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return (outputs - target).square()

    def predict(self, outputs: Tensor) -> Tensor:
        return outputs.float()
