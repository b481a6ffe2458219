"""Train mode and eval mode that differ where they must not, or do not where they must."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor, nn

from tests.planted_bugs import (
    healthy_averaged,
    healthy_digits,
    healthy_gru,
    healthy_multilabel,
    healthy_residual,
    healthy_sgd,
    healthy_transformer,
)
from tests.planted_bugs.planting import Theme
from training_core.evaluation import evaluate
from training_core.loop import Trainer

MODES = Theme("Modes")
TOGGLE = "Karpathy 2018: you forgot to toggle train/eval mode for the net"


def _batch_norms(model: nn.Module, momentum: float) -> None:
    for norm in model.modules():
        if isinstance(norm, nn.modules.batchnorm._BatchNorm):
            norm.momentum = momentum


@MODES.built(
    healthy_digits.HEALTHY,
    "BatchNorm's momentum is 0.0001: its running statistics never arrive.",
    found_by=("train_and_eval_agree",),
    seen="Keras and TensorFlow users take 0.99 for what torch calls 0.01, and further",
)
def running_statistics_never_arrive(model: nn.Module) -> None:
    _batch_norms(model, 1e-4)


@MODES.built(
    healthy_sgd.HEALTHY,
    "BatchNorm's momentum is 0: evaluation normalises with zeros and ones.",
    found_by=("train_and_eval_agree",),
)
def running_statistics_stand_still(model: nn.Module) -> None:
    _batch_norms(model, 0.0)


@MODES.network(
    healthy_residual.HEALTHY,
    "Dropout by F.dropout without training=: it is on in evaluation and in the exported model.",
    found_by=(
        "modes_differ_as_they_should",
        "evaluation_equals_plain_code",
        "package_equals_model",
    ),
    seen="PyTorch forums: F.dropout takes no notice of model.eval()",
)
class DropoutAlwaysOn(healthy_residual.Network):
    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        return super().forward(categories, nn.functional.dropout(numbers, 0.2))


@MODES.network(
    healthy_gru.HEALTHY,
    "Noise that is meant to harden training is added in evaluation too.",
    found_by=(
        "modes_differ_as_they_should",
        "evaluation_equals_plain_code",
        "package_equals_model",
    ),
)
class NoiseAlwaysOn(healthy_gru.Network):
    def forward(self, series: Tensor) -> Tensor:
        return super().forward(series + 0.1 * torch.randn_like(series))


@MODES.network(
    healthy_multilabel.HEALTHY,
    "Inputs are scaled in training only.",
    found_by=("train_and_eval_agree",),
    seen="Humbatova et al. 2020, missing preprocessing at test time",
)
class ScaledInTrainingOnly(type(healthy_multilabel.Faults().build_model(None))):
    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        numbers = numbers / 2 - 1 if self.training else numbers
        return super().forward(categories, numbers)


@MODES.network(
    healthy_transformer.HEALTHY,
    "train() is overridden and never turns dropout on again.",
    found_by=("modes_differ_as_they_should",),
    seen=TOGGLE,
)
class NeverInTrainMode(healthy_transformer.Network):
    def train(self, mode: bool = True) -> Self:
        super().train(False)
        self.training = mode
        return self


@MODES.built(
    healthy_residual.HEALTHY,
    "Dropout before the last layer is 0.98: next to nothing gets through in training.",
    found_by=(
        "modes_differ_as_they_should",
        "train_and_eval_agree",
        "inputs_help",
        "loss_falls",
        "update_health",
    ),
    seen="Schoop et al. 2021, UMLAUT: dropout rate too high",
    warns=True,
)
def dropout_of_nearly_all(model: nn.Module) -> None:
    model.out = nn.Sequential(nn.Dropout(0.98), model.out)


@MODES.network(
    healthy_averaged.HEALTHY,
    "The average of the weights is never updated, and predictions are made with it.",
    found_by=("train_and_eval_agree", "inputs_help"),
    seen="the issue trackers of several EMA implementations",
)
class AverageNeverUpdated(healthy_averaged.Averaged):
    def follow(self) -> None:
        pass


@MODES.network(
    healthy_averaged.HEALTHY,
    "The average follows at a rate of one in a million: the decay has three nines too many.",
    found_by=("train_and_eval_agree", "inputs_help"),
)
class AverageFarBehind(healthy_averaged.Averaged):
    def follow(self) -> None:
        with torch.no_grad():
            for name, value in self.layers.named_parameters():
                getattr(self, self.place(name)).lerp_(value, 1e-6)


MODES.code(
    "evaluation_in_train_mode",
    healthy_sgd.HEALTHY,
    "Evaluation does not call eval(): dropout is on, and running statistics take in validation.",
    (evaluate, "model.eval()", "model.train()"),
    found_by=("evaluation_equals_plain_code",),
    seen=TOGGLE,
)
MODES.code(
    "train_mode_never_restored",
    healthy_residual.HEALTHY,
    "After the first evaluation the model stays in eval mode: no dropout from there on.",
    (evaluate, "model.train(was_training)", "pass"),
    found_by=("evaluation_equals_plain_code", "modes_differ_as_they_should"),
    seen=TOGGLE,
)
MODES.code(
    "evaluation_augmented",
    healthy_digits.HEALTHY,
    "Validation is augmented as training is: scores are of other examples each time.",
    (
        Trainer._evaluate,
        "self.task, self.module, self.validation,",
        "self.task, self.module, "
        "self.augment(self.validation, sample=self.outcome.samples, part=0),",
    ),
    found_by=("evaluation_equals_plain_code",),
    seen="Humbatova et al. 2020, wrong preprocessing of test data",
)
