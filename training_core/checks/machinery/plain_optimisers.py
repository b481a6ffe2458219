"""Torch's optimisers in their plainest form, as the settings describe them."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import nn
from torch.nn import Parameter
from torch.optim import Optimizer

from training_core.settings import OptimiserSettings

Decays = Literal["matrices", "everything", "nothing"]


def plain_optimisers(
    model: nn.Module, settings: OptimiserSettings, *, decays: Decays = "matrices"
) -> list[Optimizer]:
    """Return unfused optimisers that together train a model: two for muon, else one.

    Args:
        model: Any.
        settings: What to build.
        decays: What weight decay is applied to; as documented: matrices, kernels and embeddings.
    """
    hidden = _hidden_matrices(model) if settings.name == "muon" else []
    taken = {id(p) for p in hidden}
    rest = [p for p in model.parameters() if p.requires_grad and id(p) not in taken]
    matrices = {id(p) for p in _matrices(model)}
    groups: list[dict[str, Any]] = []
    for parameter in rest:
        decaying = {"matrices": id(parameter) in matrices, "everything": True, "nothing": False}
        decay = settings.weight_decay if decaying[decays] else 0.0
        groups.append({"params": [parameter], "weight_decay": decay})
    optimisers: list[Optimizer] = []
    if hidden:
        optimisers.append(
            torch.optim.Muon(
                hidden,
                lr=settings.lr,
                weight_decay=0.0 if decays == "nothing" else settings.weight_decay,
                momentum=settings.momentum,
                adjust_lr_fn="match_rms_adamw",
            )
        )
    if groups:
        optimisers.append(_single(settings, groups))
    return optimisers


def _single(settings: OptimiserSettings, groups: list[dict[str, Any]]) -> Optimizer:
    adam: dict[str, Any] = {"lr": settings.lr, "betas": settings.betas, "eps": settings.eps}
    match settings.name:
        case "adam":
            return torch.optim.Adam(groups, foreach=False, **adam)
        case "sgd":
            nesterov, momentum = settings.momentum > 0, settings.momentum
            return torch.optim.SGD(
                groups, lr=settings.lr, momentum=momentum, nesterov=nesterov, foreach=False
            )
        case "nadam":
            return torch.optim.NAdam(groups, decoupled_weight_decay=True, foreach=False, **adam)
        case "adafactor":
            return torch.optim.Adafactor(groups, lr=settings.lr)
        case _:
            return torch.optim.AdamW(groups, foreach=False, **adam)


def _matrices(model: nn.Module) -> list[Parameter]:
    """Trained weights of two dimensions or more, outside of norms and not biases."""
    found = []
    for module in model.modules():
        norm = "Norm" in type(module).__name__ and type(module).__module__.startswith("torch.nn")
        for name, parameter in module.named_parameters(recurse=False):
            if parameter.requires_grad and parameter.ndim > 1 and not norm and "bias" not in name:
                found.append(parameter)
    return found


def _hidden_matrices(model: nn.Module) -> list[Parameter]:
    """Two-dimensional weights that belong neither to an embedding nor to the last linear layer."""
    modules = list(model.modules())
    outer: list[nn.Module] = [m for m in modules if isinstance(m, nn.Embedding | nn.EmbeddingBag)]
    outer += [m for m in modules if isinstance(m, nn.Linear)][-1:]
    apart = {id(p) for m in outer for p in m.parameters(recurse=False)}
    seen = {id(p): p for p in _matrices(model) if p.ndim == 2 and id(p) not in apart}
    return [p for p in model.parameters() if id(p) in seen]
