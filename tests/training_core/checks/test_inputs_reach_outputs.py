from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from check_graph_samples import (
    Convolutions,
    Language,
    Sales,
    Sentences,
    Sides,
    Table,
    find,
    pictures,
    sentences,
    table,
)
from torch import Tensor, nn

from training_core.checks.graph import InputsReachOutputs
from training_core.tabular import TabularPreprocessor


class WithoutLast(Table):
    def make_body(self) -> nn.Module:
        return nn.Sequential(nn.Linear(5, 16), nn.ReLU())

    def joined(self, categories: Tensor, numbers: Tensor) -> Tensor:
        return torch.cat([self.shop(categories[:, 0]), numbers[:, :-1]], 1)


class WithoutShop(Table):
    def joined(self, categories: Tensor, numbers: Tensor) -> Tensor:
        return torch.cat([self.shop(categories[:, 0] * 0), numbers], 1)


class OneChannel(Convolutions):
    def forward(self, image: Tensor) -> Tensor:
        return super().forward(image * torch.tensor([1.0, 0.0])[:, None, None])


class CutOff(Language):
    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(torch.cat([tokens[:, :8], tokens[:, :4]], 1))


@pytest.mark.parametrize(
    ("task", "rows", "named"),
    [
        (Sales(WithoutLast), table, "1 of 4 inputs never reach the outputs (c)"),
        (Sales(WithoutShop), table, "all of categories: shop"),
        (Sides(OneChannel), pictures, "image[:, 1]"),
        (Sentences(CutOff), sentences, "tokens[8], tokens[9], tokens[10], tokens[11]"),
    ],
    ids=["last column", "array", "channel", "positions"],
)
def test_a_dead_input_fails_by_name(task: Any, rows: Any, named: str) -> None:
    finding = find(InputsReachOutputs, task, rows())
    assert finding.verdict == "fail", finding.message
    assert named in finding.message


def test_a_constant_column_is_called_constant_and_not_dead() -> None:
    finding = find(InputsReachOutputs, Sales(Table), table().assign(b=3.0))
    assert finding.verdict == "pass"
    assert "constant in the sample: b" in finding.message


def test_an_array_that_is_mostly_constant_is_a_warning() -> None:
    finding = find(InputsReachOutputs, Sales(Table), table().assign(b=3.0, c=1.0))
    assert finding.verdict == "warn"
    assert "more than half of numbers" in finding.message


class StartsAtZero(Table):
    def __init__(self) -> None:
        super().__init__()
        nn.init.zeros_(self.head.weight)


def test_a_layer_that_starts_at_zero_hides_no_input() -> None:
    assert find(InputsReachOutputs, Sales(StartsAtZero), table()).verdict == "pass"


def test_a_flag_set_in_one_row_is_found_to_reach() -> None:
    frame = table()
    frame["b"] = 0.0
    frame.loc[200, "b"] = 1.0
    assert find(InputsReachOutputs, Sales(Table), frame).verdict == "pass"


class Strided(nn.Module):
    """Of 12 columns kernels of 5, 5 apart, leave out the last two."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv1d(1, 8, 5, stride=5), nn.ReLU(), nn.Flatten())
        self.head = nn.Linear(16, 1)

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        return self.head(self.layers(numbers[:, None])).squeeze(1)


class Signals(Sales):
    def preprocessor(self) -> TabularPreprocessor:
        return TabularPreprocessor(categories=[], numbers=[f"n{i}" for i in range(12)])


def test_last_positions_that_a_stride_leaves_out_are_a_warning() -> None:
    frame = table()
    for place in range(12):
        frame[f"n{place}"] = np.random.default_rng(place).normal(size=len(frame))
    finding = find(InputsReachOutputs, Signals(Strided), frame)
    assert finding.verdict == "warn", finding.message
    assert "n10, n11" in finding.message


class Corner(Convolutions):
    """Reads some rows of the picture, and puts these in the place of the others."""

    rows = 1

    def forward(self, image: Tensor) -> Tensor:
        return super().forward(image[:, :, : self.rows].repeat(1, 1, 6 // self.rows, 1))


class Half(Corner):
    rows = 3


@pytest.mark.parametrize(("build", "verdict"), [(Corner, "fail"), (Half, "warn")])
def test_a_network_that_reads_hardly_anything_fails_and_one_that_crops_is_warned_of(
    build: Any, verdict: str
) -> None:
    finding = find(InputsReachOutputs, Sides(build), pictures())
    assert finding.verdict == verdict, finding.message
    assert "of the positions of 'image' never reach the outputs" in finding.message


def test_the_heat_has_a_row_an_input_and_dead_ones_are_zero() -> None:
    finding = find(InputsReachOutputs, Sides(OneChannel), pictures())
    assert finding.heat is not None
    assert finding.heat.rows == ["image[:, 0]", "image[:, 1]"]
    assert max(finding.heat.values[1]) == 0 < max(finding.heat.values[0])
