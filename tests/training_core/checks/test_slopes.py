"""Gradients that are a part of what outputs do are found, and matrices that do nothing."""

from __future__ import annotations

from typing import Any

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

from tests.planted_bugs import healthy_gru
from training_core.checks.graph import ParametersTrain
from training_core.checks.graph.slopes import wrong_slopes
from training_core.checks.subject import Subject


class _Half(Table):
    """Goes two ways, one of them detached."""

    def joined(self, categories: Tensor, numbers: Tensor) -> Tensor:
        hidden = super().joined(categories, numbers)
        return hidden + 2 * hidden.detach().tanh()


class _NoGrad(Table):
    """The same by no_grad()."""

    def joined(self, categories: Tensor, numbers: Tensor) -> Tensor:
        hidden = super().joined(categories, numbers)
        with torch.no_grad():
            more = 2 * hidden.tanh()
        return hidden + more


class _StraightThrough(Table):
    """Rounds, and passes gradients as if it did not."""

    def joined(self, categories: Tensor, numbers: Tensor) -> Tensor:
        hidden = super().joined(categories, numbers)
        return hidden + (hidden.round() - hidden).detach()


class _AtTheEdge(Table):
    """All of its ReLUs stand at 0: the two sides of each differ."""

    def __init__(self) -> None:
        super().__init__()
        for parameter in (self.shop.weight, *self.body.parameters()):
            nn.init.zeros_(parameter)


class _BoundedVectors(Table):
    def __init__(self) -> None:
        super().__init__()
        self.shop = nn.Embedding(4, 3, max_norm=1.0)


class _SinglePrecision(Table):
    """Has a dtype of its own: double precision is no way to look at it."""

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        return self.head(self.body(self.joined(categories, numbers).float())).squeeze(1)


def _wrong(task: Any, rows: Any) -> list[str]:
    subject = Subject(task, rows)
    return [slope.name for slope in wrong_slopes(subject, subject.build().eval())]


@pytest.mark.parametrize("build", [_Half, _NoGrad])
def test_a_branch_that_hides_a_part_of_the_slope_is_found(build: Any) -> None:
    assert _wrong(Sales(build), table()) == ["shop.weight"]


@pytest.mark.parametrize(
    "build", [Table, Normalised, _StraightThrough, _AtTheEdge, _BoundedVectors, _SinglePrecision]
)
def test_edges_and_estimators_are_no_wrong_slopes(build: Any) -> None:
    assert _wrong(Sales(build), table()) == []


def test_slopes_through_steps_and_attention_are_right() -> None:
    assert _wrong(healthy_gru.Boiler(), healthy_gru.rows(0, 100)) == []
    assert _wrong(Sentences(Language), sentences()) == []


def test_the_network_is_left_as_it_was() -> None:
    subject = Subject(Sales(Normalised), table())
    model = subject.build().eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    wrong_slopes(subject, model)
    assert torch.get_default_dtype() is torch.float32
    after = model.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())


class _OneScore(Table):
    """Weighs what it has by a softmax over a single score, or over several."""

    scores = 1

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(6, self.scores)

    def joined(self, categories: Tensor, numbers: Tensor) -> Tensor:
        hidden = super().joined(categories, numbers)
        return hidden * self.score(hidden).softmax(1)


class _SixScores(_OneScore):
    scores = 6


class _Gated(Table):
    """Every expert computes, and one of them counts; those that are never chosen do nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(6, 6) for _ in range(8))
        self.gate = nn.Linear(6, 8)

    def joined(self, categories: Tensor, numbers: Tensor) -> Tensor:
        hidden = super().joined(categories, numbers)
        gates = self.gate(hidden).softmax(1)
        chosen = nn.functional.one_hot(gates.argmax(1), 8) * gates
        return sum(e(hidden) * chosen[:, i : i + 1] for i, e in enumerate(self.experts))


class _Adapted(Table):
    """A matrix of two parts, of which one begins at 0."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(6, 2, bias=False), nn.Linear(2, 6, bias=False)
        nn.init.zeros_(self.up.weight)

    def joined(self, categories: Tensor, numbers: Tensor) -> Tensor:
        hidden = super().joined(categories, numbers)
        return hidden + self.up(self.down(hidden))


def test_a_matrix_before_a_softmax_over_one_score_fails() -> None:
    finding = find(ParametersTrain, Sales(_OneScore), table())
    assert finding.verdict == "fail", finding.message
    assert "called, and without influence on outputs: score" in finding.message


@pytest.mark.parametrize(
    ("build", "verdict"), [(_SixScores, "pass"), (_Adapted, "pass"), (_Gated, "warn")]
)
def test_matrices_that_may_do_something_do_not_fail(build: Any, verdict: str) -> None:
    finding = find(ParametersTrain, Sales(build), table())
    assert finding.verdict == verdict, finding.message
    assert ("without influence on outputs: experts" in finding.message) == (verdict == "warn")


def test_a_state_detached_at_each_step_is_named() -> None:
    class Detached(healthy_gru.Network):
        def forward(self, series: Tensor) -> Tensor:
            state = series.new_zeros(1, len(series), healthy_gru.WIDTH)
            for step in series.split(1, 1):
                _, state = self.gru(step, state.detach())
            return self.out(state[0]).squeeze(1)

    class Task(healthy_gru.Boiler):
        def build_model(self, preprocessor: Any) -> nn.Module:
            return Detached(2)

    assert any("gru" in name for name in _wrong(Task(), healthy_gru.rows(0, 100)))
