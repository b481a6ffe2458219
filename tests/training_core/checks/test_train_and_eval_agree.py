from __future__ import annotations

from typing import Any

import pytest
import torch
from check_graph_samples import (
    Amounts,
    Convolutions,
    Normalised,
    Sales,
    Sides,
    Table,
    find,
    pictures,
    table,
)
from torch import Tensor, nn

from training_core.checks.graph import TrainAndEvalAgree


class OffCentre(Normalised):
    """What is normalised is far from mean 0 and variance 1, so that statistics matter."""

    def joined(self, categories: Tensor, numbers: Tensor) -> Tensor:
        return super().joined(categories, numbers) * 6 + 4


class NeverUpdated(OffCentre):
    momentum = 0.0


class LastBatch(OffCentre):
    momentum = 0.99  # as other libraries count it


class TooSlow(OffCentre):
    momentum = 0.0005


class NormalisedInTraining(Table):
    def joined(self, categories: Tensor, numbers: Tensor) -> Tensor:
        joined = super().joined(categories, numbers * 3 + 2)
        if self.training:
            joined = (joined - joined.mean(0)) / joined.std(0)
        return joined


class Averaged(Table):
    """Predicts with a running average of its last layer."""

    pace = 0.05

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("average", self.head.weight.detach().clone())

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        hidden = self.body(self.joined(categories, numbers))
        if self.training:
            self.average.lerp_(self.head.weight.detach(), self.pace)
        weight = self.head.weight if self.training else self.average
        return nn.functional.linear(hidden, weight, self.head.bias).squeeze(1)


class NeverAveraged(Averaged):
    pace = 0.0


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (NeverUpdated, "body.1 (BatchNorm1d) with momentum 0"),
        (LastBatch, "body.1 (BatchNorm1d) with momentum 0.99"),
        (TooSlow, "body.1 (BatchNorm1d) with momentum 0.0005"),
        (NormalisedInTraining, "in eval mode and"),
        (NeverAveraged, "in eval mode and"),
    ],
)
def test_an_eval_mode_that_loses_more_fails(build: Any, said: str) -> None:
    finding = find(TrainAndEvalAgree, Sales(build), table(400), steps=60, epochs=10)
    assert finding.verdict == "fail", finding.message
    assert said in finding.message
    assert finding.measured > finding.limit


class Cumulative(OffCentre):
    momentum = None


class Slow(OffCentre):
    momentum = 0.01


class FunctionalDropout(Table):
    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        hidden = self.body(self.joined(categories, numbers))
        return self.head(nn.functional.dropout(hidden, 0.5, self.training)).squeeze(1)


@pytest.mark.parametrize("build", [OffCentre, Cumulative, Slow, FunctionalDropout, Averaged])
def test_healthy_networks_pass(build: Any) -> None:
    finding = find(TrainAndEvalAgree, Sales(build), table(400), steps=60)
    assert finding.verdict == "pass", finding.message


@pytest.mark.parametrize(
    ("task", "rows"),
    [(Sales(OffCentre), table), (Amounts(OffCentre), table), (Sides(Convolutions), pictures)],
    ids=["binary", "regression", "images"],
)
def test_tiny_batches_are_noisy_and_pass(task: Any, rows: Any) -> None:
    finding = find(TrainAndEvalAgree, task, rows(100), batch_size=4, steps=30)
    assert finding.verdict == "pass", finding.message


def test_a_slow_momentum_is_enough_for_a_long_run() -> None:
    finding = find(TrainAndEvalAgree, Sales(TooSlow), table(), steps=60, planned_rows=10_000_000)
    assert finding.verdict != "fail", finding.message
    assert torch.is_tensor(TooSlow().body[1].running_mean)
