"""Modules that draw, and modules that look at the whole batch."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd


def dropouts(model: nn.Module) -> dict[str, float]:
    """Return what of a model drops out with which probability above 0, by the module's name."""
    rates = {name: _rate(module) for name, module in model.named_modules()}
    return {name: rate for name, rate in rates.items() if rate > 0}


def without_dropout(model: nn.Module) -> nn.Module:
    """Set the probability of all dropout to 0, in place; return the model."""
    for module in model.modules():
        if isinstance(module, _DropoutNd):
            module.p = 0.0
        elif isinstance(getattr(module, "dropout", None), float):  # attention, recurrent layers
            setattr(module, "dropout", 0.0)  # noqa: B010 (mypy takes attributes for modules)
    return model


def batch_norms(model: nn.Module) -> dict[str, _BatchNorm]:
    """Return torch's own BatchNorm layers by name."""
    return {name: m for name, m in model.named_modules() if isinstance(m, _BatchNorm)}


def state_of(module: nn.Module) -> dict[str, Tensor]:
    """Return copies of all parameters and buffers by name, those that are not saved included."""
    both = [*module.named_parameters(), *module.named_buffers()]
    return {name: tensor.detach().clone() for name, tensor in both}


def _rate(module: nn.Module) -> float:
    if isinstance(module, _DropoutNd):
        return float(module.p)
    if isinstance(module, nn.MultiheadAttention):
        return float(module.dropout)
    if isinstance(module, nn.RNNBase) and module.num_layers > 1:  # it drops between layers
        return float(module.dropout)
    return 0.0
