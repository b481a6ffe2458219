"""Outputs that the loss does not determine, that are thrown away, or that come of too little."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.planted_bugs import (
    healthy_categories,
    healthy_digits,
    healthy_gru,
    healthy_multilabel,
    healthy_residual,
)
from tests.planted_bugs.planting import Theme
from training_core.tabular import TabularPreprocessor
from training_core.task import Preprocessor

OUTPUTS = Theme("Outputs")


@OUTPUTS.task(
    healthy_multilabel.HEALTHY,
    "Logits are centred over an example's labels in the loss, and not where they are predicted: "
    "how likely any fault is at all is left to chance.",
    found_by=("loss_function",),
)
class CentredInTheLossOnly(healthy_multilabel.Faults):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs - outputs.mean(1, keepdim=True), target)


@OUTPUTS.task(
    healthy_multilabel.HEALTHY,
    "The loss leaves out the last label, which is predicted all the same.",
    found_by=("loss_function",),
)
class LastLabelLeftOut(healthy_multilabel.Faults):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs[:, :-1], target[:, :-1])


@OUTPUTS.task(
    healthy_multilabel.HEALTHY,
    "Each label's loss is multiplied with how many labels an example has: those without any fault "
    "teach nothing.",
    found_by=("loss_function",),
)
class FaultlessOnesTeachNothing(healthy_multilabel.Faults):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs, target) * target.sum(1)


@OUTPUTS.built(
    healthy_digits.HEALTHY,
    "Dropout stands behind the last layer: one logit in five is zero in training.",
    found_by=("modes_differ_as_they_should",),
)
def logits_dropped(model: nn.Module) -> None:
    model.layers.append(nn.Dropout(0.2))


class _OneTable(nn.Module):
    """The sum of both columns' vectors, from one table."""

    def __init__(self, cardinalities: list[int], numbers: int) -> None:
        super().__init__()
        self.table = nn.Embedding(sum(cardinalities), 12)
        self.layers = nn.Sequential(
            nn.Linear(12 + numbers, 64), nn.GELU(), nn.Linear(64, len(healthy_categories.PLANS))
        )

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        return self.layers(torch.cat([self.table(categories).sum(1), numbers], 1))


@OUTPUTS.task(
    healthy_categories.HEALTHY,
    "City and job share a table of vectors, and nothing tells the third city from the third job.",
    found_by=("inputs_reach_outputs",),
)
class OneVectorForCityAndJob(healthy_categories.Plans):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        assert isinstance(preprocessor, TabularPreprocessor)
        return _OneTable(preprocessor.cardinalities, len(preprocessor.number_columns))


@OUTPUTS.built(
    healthy_digits.HEALTHY,
    "The first convolution leaps over two of three rows and columns: of nine pixels it reads one.",
    found_by=("inputs_reach_outputs",),
)
def pixels_leapt_over(model: nn.Module) -> None:
    model.layers[0] = nn.Sequential(
        nn.Conv2d(1, 16, 1, stride=3, bias=False), nn.Upsample(size=(8, 8))
    )


@OUTPUTS.network(
    healthy_gru.HEALTHY,
    "Of a series' twenty hours the network reads the last two: a slice from a quick trial.",
    found_by=("inputs_reach_outputs",),
    seen="Humbatova et al. 2020, wrong selection of features",
)
class TwoOfTwentyHoursRead(healthy_gru.Network):
    def forward(self, series: Tensor) -> Tensor:
        return super().forward(series[:, -2:])


@OUTPUTS.task(
    healthy_residual.HEALTHY,
    "Predictions are rounded to 0 and 1: they rank nothing, and no threshold can be chosen.",
    found_by=("package_equals_model",),
    seen="scikit-learn users: roc_auc_score of predict() and not of predict_proba()",
)
class PredictionsRounded(healthy_residual.Churn):
    def predict(self, outputs: Tensor) -> Tensor:
        return super().predict(outputs).round()
