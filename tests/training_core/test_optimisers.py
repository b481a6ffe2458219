"""Optimisers: torch's own numbers, who decays, and state that is there and stays in place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, get_args

import pytest
import torch
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.optim import Optimizer

from training_core.errors import ConfigurationError
from training_core.optim.flat import FlatParameters
from training_core.optim.groups import by_decay, hidden_matrices
from training_core.optim.optimisers import build_optimisers, materialise_state
from training_core.optim.settings import OptimiserSettings

NAMES = get_args(OptimiserSettings.model_fields["name"].annotation)


class Sentence(nn.Module):
    """Every kind of parameter that is told apart; embedding and output are one matrix."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.embedding = nn.Embedding(11, 8)
        self.table_bias = nn.Parameter(torch.randn(3, 3))
        self.convolution = nn.Conv1d(8, 8, 3, padding=1)
        self.batch_norm = nn.BatchNorm1d(8)
        self.wide_norm = nn.LayerNorm([8, 5])
        self.root_norm = nn.RMSNorm([8, 5])
        self.hidden = nn.Linear(5, 16)
        self.scale = nn.Parameter(torch.ones(16))
        self.back = nn.Linear(16, 8, bias=False)
        self.frozen = nn.Linear(8, 8)
        self.frozen.requires_grad_(False)
        self.head = nn.Linear(8, 11)
        self.head.weight = self.embedding.weight

    def forward(self, words: Tensor) -> Tensor:
        x = self.embedding(words).transpose(1, 2) + self.table_bias.sum()
        x = self.root_norm(self.wide_norm(self.batch_norm(self.convolution(x))))
        x = self.back(torch.tanh(self.hidden(x)) * self.scale)
        outputs: Tensor = self.head(self.frozen(x))
        return outputs


def network() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 16), nn.LayerNorm(16), nn.Linear(16, 7), nn.Linear(7, 1))


def gradients(model: nn.Module, seed: int) -> None:
    """Give each parameter a gradient of its own, in place where it has one."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        value = torch.randn(parameter.shape, generator=generator)
        if parameter.grad is None:
            parameter.grad = value
        else:
            parameter.grad.copy_(value)


def names_of(model: nn.Module, parameters: Iterable[Tensor]) -> set[str]:
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {names[id(parameter)] for parameter in parameters}


def state_tensors(optimisers: Iterable[Optimizer]) -> list[Tensor]:
    return [t for o in optimisers for state in o.state.values() for t in state.values()]


# ---- groups ----------------------------------------------------------------------------------


def test_norms_biases_and_vectors_get_no_decay_and_frozen_weights_no_update() -> None:
    model = Sentence()
    decaying, others = by_decay(model)
    assert names_of(model, decaying) == {
        "embedding.weight",  # tied to head.weight, and there once
        "convolution.weight",
        "hidden.weight",
        "back.weight",
    }
    assert names_of(model, others) == {
        "table_bias",
        "convolution.bias",
        "batch_norm.weight",
        "batch_norm.bias",
        "wide_norm.weight",  # a matrix, but of a norm
        "wide_norm.bias",
        "root_norm.weight",
        "hidden.bias",
        "scale",
        "head.bias",
    }
    assert len(decaying) + len(others) == 14


@pytest.mark.parametrize("name", NAMES)
def test_only_what_decays_has_a_weight_decay(name: str) -> None:
    model = Sentence()
    settings = OptimiserSettings.model_validate({"name": name, "weight_decay": 0.25})
    optimisers = build_optimisers(model, settings)
    decay = {
        id(parameter): group["weight_decay"]
        for optimiser in optimisers
        for group in optimiser.param_groups
        for parameter in group["params"]
    }
    decaying, others = by_decay(model)
    assert decay == {**{id(p): 0.25 for p in decaying}, **{id(p): 0.0 for p in others}}


def test_muon_trains_hidden_matrices_and_adamw_the_rest() -> None:
    model = Sentence()
    assert names_of(model, hidden_matrices(model)) == {"hidden.weight", "back.weight"}
    muon, adamw = build_optimisers(model, OptimiserSettings(name="muon"))
    assert isinstance(muon, torch.optim.Muon)
    assert isinstance(adamw, torch.optim.AdamW)
    shares = [[p for group in o.param_groups for p in group["params"]] for o in (muon, adamw)]
    assert names_of(model, shares[0]) == {"hidden.weight", "back.weight"}
    assert len(shares[0]) + len(shares[1]) == 14
    untied = network()
    assert names_of(untied, hidden_matrices(untied)) == {"0.weight", "2.weight"}


def test_without_hidden_matrices_muon_leaves_everything_to_adamw() -> None:
    (optimiser,) = build_optimisers(nn.Linear(4, 1), OptimiserSettings(name="muon"))
    assert isinstance(optimiser, torch.optim.AdamW)


def test_a_model_with_nothing_to_train_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="all parameters of Linear are frozen"):
        build_optimisers(nn.Linear(4, 1).requires_grad_(False), OptimiserSettings())


# ---- parity with torch -----------------------------------------------------------------------

LR, BETAS, EPS, DECAY = 0.02, (0.8, 0.95), 1e-6, 0.1


def _muon_by_hand(groups: list[dict[str, Any]]) -> list[Optimizer]:
    matrices = [groups[0]["params"][0], groups[0]["params"][1]]
    rest = [{**groups[0], "params": groups[0]["params"][2:]}, groups[1]]
    return [
        torch.optim.Muon(
            matrices, lr=LR, weight_decay=DECAY, momentum=0.9, adjust_lr_fn="match_rms_adamw"
        ),
        torch.optim.AdamW(rest, lr=LR, betas=BETAS, eps=EPS),
    ]


BY_HAND: dict[str, Callable[[list[dict[str, Any]]], list[Optimizer]]] = {
    "adamw": lambda groups: [torch.optim.AdamW(groups, lr=LR, betas=BETAS, eps=EPS)],
    "adam": lambda groups: [torch.optim.Adam(groups, lr=LR, betas=BETAS, eps=EPS)],
    "sgd": lambda groups: [torch.optim.SGD(groups, lr=LR, momentum=0.9, nesterov=True)],
    "nadam": lambda groups: [
        torch.optim.NAdam(groups, lr=LR, betas=BETAS, eps=EPS, decoupled_weight_decay=True)
    ],
    "adafactor": lambda groups: [torch.optim.Adafactor(groups, lr=LR)],
    "muon": _muon_by_hand,
}


@pytest.mark.parametrize("name", NAMES)
def test_each_optimiser_takes_the_steps_of_torchs_own(name: str) -> None:
    ours, theirs = network(), network()
    optimisers = build_optimisers(
        ours,
        OptimiserSettings.model_validate(
            {"name": name, "lr": LR, "betas": BETAS, "eps": EPS, "weight_decay": DECAY}
        ),
    )
    materialise_state(optimisers)
    matrices = [p for p in theirs.parameters() if p.ndim == 2]
    vectors = [p for p in theirs.parameters() if p.ndim == 1]
    by_hand = BY_HAND[name](
        [{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}]
    )
    before = [p.detach().clone() for p in ours.parameters()]
    for step in range(6):
        gradients(ours, step)
        gradients(theirs, step)
        for optimiser in (*optimisers, *by_hand):
            optimiser.step()
    for one, other, old in zip(ours.parameters(), theirs.parameters(), before, strict=True):
        assert torch.allclose(one, other, rtol=1e-5, atol=1e-6)
        assert not torch.allclose(one, old, rtol=1e-3)


# ---- state -----------------------------------------------------------------------------------


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_state_is_there_before_the_first_step_and_stays_in_place(name: str, flat: bool) -> None:
    model = network()
    with torch.no_grad():
        model[0].weight[0, 0] = -0.0  # type: ignore[index]
    weights = [p.detach().clone() for p in model.parameters()]
    settings = OptimiserSettings.model_validate({"name": name})
    optimisers = build_optimisers(model, settings, flat=FlatParameters(model) if flat else None)
    if not flat:
        assert all(p.grad is None for p in model.parameters())
    materialise_state(optimisers)
    for parameter, value in zip(model.parameters(), weights, strict=True):
        assert torch.equal(parameter, value)
        assert torch.equal(parameter.signbit(), value.signbit())
        assert flat or parameter.grad is None
    state = state_tensors(optimisers)
    assert state
    assert all(float(t.abs().sum()) in (0.0, 1.0) for t in state)  # nadam's product begins at 1
    places = [t.data_ptr() for t in state]
    for step in range(3):
        gradients(model, step)
        for optimiser in optimisers:
            optimiser.step()
    assert [t.data_ptr() for t in state_tensors(optimisers)] == places
    assert all(t is other for t, other in zip(state, state_tensors(optimisers), strict=True))
    assert all(float(t.abs().sum()) > 0 for t in state)


@pytest.mark.parametrize("name", NAMES)
def test_state_made_ahead_changes_no_step(name: str) -> None:
    ahead, lazy = network(), network()
    settings = OptimiserSettings.model_validate({"name": name, "weight_decay": 0.1})
    first, second = build_optimisers(ahead, settings), build_optimisers(lazy, settings)
    materialise_state(first)
    materialise_state(first)  # nor does it matter how often
    for step in range(3):
        gradients(ahead, step)
        gradients(lazy, step)
        for optimiser in (*first, *second):
            optimiser.step()
    assert all(map(torch.equal, ahead.parameters(), lazy.parameters()))


def test_sgd_without_momentum_has_no_state() -> None:
    model = network()
    optimisers = build_optimisers(model, OptimiserSettings(name="sgd", momentum=0))
    materialise_state(optimisers)
    gradients(model, 0)
    optimisers[0].step()
    assert state_tensors(optimisers) == []


@pytest.mark.parametrize("name", NAMES)
def test_state_goes_through_torchs_distributed_checkpoints(name: str) -> None:
    settings = OptimiserSettings.model_validate({"name": name})
    models = [network(), network(), network()]
    optimisers = [build_optimisers(model, settings) for model in models]
    for each in optimisers[:2]:
        materialise_state(each)
    for step in range(4):
        gradients(models[0], step)
        for optimiser in optimisers[0]:
            optimiser.step()
    weights, state = get_state_dict(models[0], optimisers[0])
    for model, others in zip(models[1:], optimisers[1:], strict=True):
        set_state_dict(model, others, model_state_dict=weights, optim_state_dict=state)
        ours, theirs = state_tensors(optimisers[0]), state_tensors(others)
        assert all(map(torch.equal, ours, theirs))
        assert len(ours) == len(theirs) > 0
