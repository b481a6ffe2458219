"""Torch's optimisers, built from settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.distributed.tensor import DTensor
from torch.nn import Parameter
from torch.optim import Optimizer

from training_core.errors import ConfigurationError
from training_core.optim.flat import FlatParameters
from training_core.optim.flat_adamw import FlatAdamW
from training_core.optim.groups import Parts, by_decay, hidden_matrices, parameter_groups
from training_core.optim.settings import OptimiserSettings


def build_optimisers(
    model: nn.Module,
    settings: OptimiserSettings,
    *,
    flat: FlatParameters | None = None,
    parts: Parts | None = None,
) -> list[Optimizer]:
    """Return the optimisers that together train a model: two for muon, else one.

    Args:
        model: On its device, sharded if it is to be.
        settings: What to build.
        flat: The model's parameters, if they lie in one buffer: adamw then works on the buffer.
        parts: What is trained alike, each a group of its own; None: all of it.

    Raises:
        ConfigurationError: Nothing is to be trained; or adafactor is to train sharded parameters.
    """
    groups = parameter_groups(*by_decay(model), weight_decay=settings.weight_decay, parts=parts)
    if not groups:
        raise ConfigurationError(
            f"all parameters of {type(model).__name__} are frozen, or it has none",
            hint="set requires_grad_(True) on what is to be trained",
        )
    if flat is not None and settings.name == "adamw":
        adam = _adam(settings)
        return [FlatAdamW(flat, weight_decay=settings.weight_decay, **adam)]
    if settings.name == "muon":
        return _muon(model, settings, parts)
    return [_single(settings, groups)]


def materialise_state(optimisers: Iterable[Optimizer]) -> None:
    """Create all state as the first step would, with no step: weights and counters stay.

    So a checkpoint can be loaded in place, and fused SGD, whose first step leaves its momentum
    uninitialised if it is skipped, has no first step.
    """
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            for parameter in group["params"]:
                if not optimiser.state.get(parameter):
                    _materialise(optimiser, group, parameter)


def _materialise(optimiser: Optimizer, group: dict[str, Any], parameter: Parameter) -> None:
    if isinstance(optimiser, torch.optim.SGD):
        if group["momentum"]:
            optimiser.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
        return
    without = parameter.grad is None
    if without:
        parameter.grad = torch.zeros_like(parameter)
    # torch's own initialisation, private but the same in all of them; it fills lists we do not need
    lists = _LISTS[type(optimiser)]
    optimiser._init_group({**group, "params": [parameter]}, *([] for _ in range(lists)))  # type: ignore[attr-defined]
    if without:
        parameter.grad = None


_LISTS: dict[type[Optimizer], int] = {
    torch.optim.AdamW: 6,
    torch.optim.Adam: 6,
    torch.optim.NAdam: 6,
    torch.optim.Adafactor: 6,
    torch.optim.Muon: 3,
}


def _adam(settings: OptimiserSettings) -> dict[str, Any]:
    return {"lr": settings.lr, "betas": settings.betas, "eps": settings.eps}


def _single(settings: OptimiserSettings, groups: list[dict[str, Any]]) -> Optimizer:
    adam, lr, momentum = _adam(settings), settings.lr, settings.momentum
    sharded = any(isinstance(p, DTensor) for group in groups for p in group["params"])
    match settings.name:
        case "adam":  # decay is part of the gradient, as Adam has it
            return torch.optim.Adam(groups, fused=True, **adam)
        case "sgd":
            return torch.optim.SGD(
                groups,
                lr=lr,
                momentum=momentum,
                nesterov=momentum > 0,
                fused=not sharded,  # there is no fused SGD for DTensors
            )
        case "nadam":
            return torch.optim.NAdam(groups, decoupled_weight_decay=True, **adam)
        case "adafactor" if sharded:
            raise ConfigurationError(
                "training.optimiser.name is adafactor, which cannot train sharded weights",
                hint="set training.parallel.strategy to ddp, or choose another optimiser",
            )
        case "adafactor":
            return torch.optim.Adafactor(groups, lr=lr)
        case _:
            return torch.optim.AdamW(groups, fused=True, **adam)


def _muon(model: nn.Module, settings: OptimiserSettings, parts: Parts | None) -> list[Optimizer]:
    """Muon for hidden matrices, scaled so that one learning rate suits both (Liu et al. 2025).

    It orthogonalises in bfloat16, so on sharded matrices, whose products are added up in another
    order, it agrees with one process to three digits, not to six as the others do.
    """
    matrices = hidden_matrices(model)
    taken = {id(p) for p in matrices}
    decaying, others = by_decay(model)
    decaying = [p for p in decaying if id(p) not in taken]
    decay = settings.weight_decay
    rest = parameter_groups(decaying, others, weight_decay=decay, parts=parts)
    optimisers: list[Optimizer] = []
    if matrices:
        optimisers.append(
            torch.optim.Muon(
                parameter_groups(matrices, [], weight_decay=decay, parts=parts),
                lr=settings.lr,
                weight_decay=decay,
                momentum=settings.momentum,
                adjust_lr_fn="match_rms_adamw",
            )
        )
    if rest:
        optimisers.append(torch.optim.AdamW(rest, fused=True, **_adam(settings)))
    return optimisers
