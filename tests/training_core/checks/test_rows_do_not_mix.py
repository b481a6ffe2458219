from __future__ import annotations

import pytest
import torch
from check_graph_samples import (
    Language,
    Normalised,
    Sales,
    Sentences,
    Table,
    find,
    sentences,
    table,
)
from torch import Tensor, nn

from training_core.checks.graph import RowsDoNotMix


class Reshaped(Table):
    """Joins by a view instead of by column: a row's features come from several rows."""

    def joined(self, categories: Tensor, numbers: Tensor) -> Tensor:
        rows = len(numbers)
        return torch.cat([self.shop(categories[:, 0]), numbers.T.reshape(rows, 3)], 1)


class OverTheBatch(nn.Module):
    def forward(self, hidden: Tensor) -> Tensor:
        return hidden.softmax(0) * 10


class SoftmaxOverRows(Table):
    def make_body(self) -> nn.Module:
        return nn.Sequential(nn.Linear(6, 16), OverTheBatch())


class BatchStatistics(Table):
    """BatchNorm without running statistics: in eval mode it looks at the batch as well."""

    def make_body(self) -> nn.Module:
        return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16, track_running_stats=False))


class WrongAxis(Language):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2, batch_first=False)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        found, _ = self.attention(hidden, hidden, hidden, need_weights=False)
        return self.head(self.norm(hidden + found))


@pytest.mark.parametrize(
    ("task", "rows", "where"),
    [
        (Sales(Reshaped), table, "Reshaped"),
        (Sales(SoftmaxOverRows), table, "body.1 (OverTheBatch)"),
        (Sales(BatchStatistics), table, "body.1 (BatchNorm1d)"),
        (Sentences(WrongAxis), sentences, "attention (MultiheadAttention)"),
    ],
    ids=["reshape", "softmax", "batch statistics", "batch_first"],
)
def test_rows_that_mix_in_eval_mode_fail_and_the_place_is_named(task, rows, where) -> None:
    finding = find(RowsDoNotMix, task, rows())
    assert finding.verdict == "fail", finding.message
    assert where in finding.message
    assert finding.heat is not None
    assert finding.measured > finding.limit


class OwnNorm(nn.Module):
    """BatchNorm as someone would write it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(16))

    def forward(self, hidden: Tensor) -> Tensor:
        if self.training:
            mean = hidden.mean(0)
            self.mean.lerp_(mean.detach(), 0.1)
            return hidden - mean
        return hidden - self.mean


class OwnNormalised(Table):
    def make_body(self) -> nn.Module:
        return nn.Sequential(nn.Linear(6, 16), OwnNorm(), nn.Tanh())


def test_batchnorm_is_said_to_mix_in_train_mode_and_passes() -> None:
    finding = find(RowsDoNotMix, Sales(Normalised), table())
    assert finding.verdict == "pass"
    assert "body.1 (BatchNorm1d)" in finding.message


def test_a_normalisation_of_the_models_own_that_keeps_statistics_passes() -> None:
    finding = find(RowsDoNotMix, Sales(OwnNormalised), table())
    assert finding.verdict == "pass", finding.message
    assert "OwnNorm" in finding.message


class CentredInTraining(Table):
    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        if self.training:
            numbers = numbers - numbers.mean(0)
        return super().forward(categories, numbers)


def test_what_mixes_in_train_mode_only_and_keeps_nothing_is_a_warning() -> None:
    finding = find(RowsDoNotMix, Sales(CentredInTraining), table())
    assert finding.verdict == "warn", finding.message


class Squeezed(Table):
    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        return self.head(self.body(self.joined(categories, numbers))).squeeze()


def test_a_squeeze_that_takes_the_batch_away_is_a_warning() -> None:
    finding = find(RowsDoNotMix, Sales(Squeezed), table())
    assert finding.verdict == "warn"
    assert "single row" in finding.message


class AlwaysDropping(Table):
    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        hidden = self.body(self.joined(categories, numbers))
        return self.head(nn.functional.dropout(hidden, 0.5)).squeeze(1)


def test_chance_in_eval_mode_is_not_taken_for_mixing() -> None:
    assert find(RowsDoNotMix, Sales(AlwaysDropping), table()).verdict == "pass"
