"""Sets and replaces layers of a network as the settings say; names and weights stay."""

from __future__ import annotations

from typing import TypeVar

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from training_core.errors import ConfigurationError
from training_core.parallel.strategy import Strategy
from training_core.regularisation.batch_norm import (
    GhostBatchNorm,
    GhostBatchNorm1d,
    GhostBatchNorm2d,
    GhostBatchNorm3d,
    SynchronisedBatchNorm,
)
from training_core.regularisation.settings import RegularisationSettings
from training_core.regularisation.stochastic_depth import StochasticDepth

Layer = TypeVar("Layer", bound=nn.Module)

_GHOSTS: dict[type[nn.Module], type[GhostBatchNorm]] = {
    nn.BatchNorm1d: GhostBatchNorm1d,
    nn.BatchNorm2d: GhostBatchNorm2d,
    nn.BatchNorm3d: GhostBatchNorm3d,
}


def regularise(model: nn.Module, settings: RegularisationSettings, strategy: Strategy) -> None:
    """Change a network's layers in place, before it is compiled, wrapped or sharded.

    Raises:
        ConfigurationError: It has no layer of a kind that a setting is about.
    """
    if settings.dropout is not None:
        for layer in _found(model, _DropoutNd, "dropout", "nn.Dropout"):
            layer.p = settings.dropout
    if settings.stochastic_depth is not None:
        depths = _found(model, StochasticDepth, "stochastic_depth", "StochasticDepth")
        for number, depth in enumerate(depths, 1):  # Huang et al. 2016, section 4: linear decay
            depth.probability = settings.stochastic_depth * number / len(depths)
    if settings.batch_norm == "plain":
        return
    _found(model, _BatchNorm, "batch_norm", "BatchNorm")
    if settings.batch_norm == "ghost":
        _replace(model, settings.ghost_rows)
    elif strategy.world_size > 1:  # of one process they are the rows of a microbatch already
        _replace(model, 0)


def _found(model: nn.Module, kind: type[Layer], setting: str, name: str) -> list[Layer]:
    found = [module for module in model.modules() if isinstance(module, kind)]
    if not found:
        raise ConfigurationError(
            f"training.regularisation.{setting} is set, and {type(model).__name__} has no "
            f"{name} layer",
            hint="put such layers into the network, or leave the setting out",
        )
    return found


def _replace(model: nn.Module, ghost_rows: int) -> None:
    """Put layers of another class in place of torch's own; what a user derived stays."""
    done: dict[nn.Module, _BatchNorm] = {}  # one that is used twice stays one
    for module in list(model.modules()):
        for name, child in list(module._modules.items()):
            if type(child) in _GHOSTS:
                assert isinstance(child, _BatchNorm)
                if child not in done:
                    done[child] = _like(child, ghost_rows)
                setattr(module, name, done[child])


def _like(layer: _BatchNorm, ghost_rows: int) -> _BatchNorm:
    kind = _GHOSTS[type(layer)] if ghost_rows else SynchronisedBatchNorm
    new = kind(
        layer.num_features,
        eps=layer.eps,
        momentum=layer.momentum,
        affine=layer.affine,
        track_running_stats=layer.track_running_stats,
    )
    if isinstance(new, GhostBatchNorm):
        new.rows = ghost_rows
    new._parameters, new._buffers = layer._parameters, layer._buffers
    new.training = layer.training
    return new
