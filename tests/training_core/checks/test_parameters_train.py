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

from training_core.checks.graph import ParametersTrain
from training_core.optim import optimisers, update


class Frozen(Table):
    """A part whose weights are random and do not learn."""

    def __init__(self) -> None:
        super().__init__()
        self.body.requires_grad_(False)


class Detached(Table):
    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        return self.head(self.body(self.joined(categories, numbers).detach())).squeeze(1)


class Forgotten(Table):
    def __init__(self) -> None:
        super().__init__()
        self.second = nn.Linear(16, 16)


class ForgottenLast(Table):
    """A loop over layers that ends one too early."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))

    def joined(self, categories: Tensor, numbers: Tensor) -> Tensor:
        hidden = super().joined(categories, numbers)
        for block in self.blocks[:-1]:
            hidden = hidden + block(hidden)
        return hidden


class InAList(Table):
    """Layers in a plain list are no parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.more = [nn.Linear(6, 6)]

    def joined(self, categories: Tensor, numbers: Tensor) -> Tensor:
        return self.more[0](super().joined(categories, numbers))


class NeverAveraged(Table):
    """Computes in eval mode with averages that nobody updates."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("average", self.head.weight.detach().clone())

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        hidden = self.body(self.joined(categories, numbers))
        weight = self.head.weight if self.training else self.average
        return nn.functional.linear(hidden, weight, self.head.bias).squeeze(1)


class Rounded(Table):
    def joined(self, categories: Tensor, numbers: Tensor) -> Tensor:
        return super().joined(categories, numbers).round()


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (Frozen, "random and never trained: body.0"),
        (Detached, "no gradient reaches: shop.weight"),
        (Forgotten, "never called in training: second"),
        (ForgottenLast, "never called in training: blocks.2"),
        (InAList, "neither parameter nor buffer: more"),
        (NeverAveraged, "buffers that are random and never change: average"),
        (Rounded, "no gradient reaches: shop.weight"),
    ],
)
def test_what_does_not_learn_fails_by_name(build: Any, said: str) -> None:
    finding = find(ParametersTrain, Sales(build), table())
    assert finding.verdict == "fail", finding.message
    assert said in finding.message


class Loaded(Table):
    """A part that was trained before: the same for each seed."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        with torch.no_grad():
            for parameter in self.shop.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
        self.shop.requires_grad_(False)


class Features(Table):
    """Random Fourier features: random on purpose, and kept."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("frequencies", torch.randn(6, 6))

    def joined(self, categories: Tensor, numbers: Tensor) -> Tensor:
        return (super().joined(categories, numbers) @ self.frequencies).sin()


class Experts(Table):
    """Each row goes to one expert; the third has no rows."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))

    def joined(self, categories: Tensor, numbers: Tensor) -> Tensor:
        hidden = super().joined(categories, numbers)
        out = torch.zeros_like(hidden)
        chosen = (numbers[:, 0] > 0).long()
        for place, expert in enumerate(self.experts):
            rows = (chosen == place).nonzero().flatten()
            if len(rows):
                out = out.index_copy(0, rows, expert(hidden[rows]))
        return out


class StartsAtZero(Table):
    def __init__(self) -> None:
        super().__init__()
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.body[0].bias)


@pytest.mark.parametrize(
    ("build", "verdict"),
    [
        (Normalised, "pass"),
        (Loaded, "pass"),
        (StartsAtZero, "pass"),
        (Features, "warn"),
        (Experts, "warn"),
    ],
)
def test_what_is_meant_to_stay_does_not_fail(build: Any, verdict: str) -> None:
    finding = find(ParametersTrain, Sales(build), table())
    assert finding.verdict == verdict, finding.message


@pytest.mark.parametrize("name", ["adamw", "adam", "sgd", "nadam", "adafactor", "muon"])
def test_every_optimiser_trains_all_of_a_transformer(name: str) -> None:
    task, rows = Sentences(Language), sentences()
    finding = find(ParametersTrain, task, rows, optimiser={"name": name, "lr": 1e-2})
    assert finding.verdict == "pass", finding.message
    assert {"head.weight", "attention.in_proj_bias"} <= {r["parameter"] for r in finding.table}


@pytest.mark.parametrize(("decay", "verdict"), [(0.1, "pass"), (0.01, "pass"), (1.0, "fail")])
def test_a_weight_decay_of_one_is_named(decay: float, verdict: str) -> None:
    optimiser = {"lr": 3e-3, "weight_decay": decay}
    finding = find(ParametersTrain, Sales(Table), table(), optimiser=optimiser)
    assert finding.verdict == verdict, finding.message
    assert ("weight decay 1 " in finding.message) == (verdict == "fail")


def test_parameters_that_the_optimiser_never_gets_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = optimisers.by_decay

    def without_first(model: nn.Module) -> Any:
        decaying, others = whole(model)
        return decaying[1:], others

    monkeypatch.setattr(optimisers, "by_decay", without_first)
    monkeypatch.setattr(update.FlatParameters, "fits", staticmethod(lambda model: False))
    finding = find(ParametersTrain, Sales(Table), table())
    assert finding.verdict == "fail"
    assert "in no optimiser group: shop.weight" in finding.message


def test_decay_of_norms_and_biases_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def everything(model: nn.Module) -> Any:
        return list(model.parameters()), []

    monkeypatch.setattr(optimisers, "by_decay", everything)
    monkeypatch.setattr(update.FlatParameters, "fits", staticmethod(lambda model: False))
    finding = find(ParametersTrain, Sales(Normalised), table())
    assert finding.verdict == "fail"
    assert "norms and biases decay" in finding.message
    assert "body.1.weight" in finding.message
