"""Running statistics of normalisation layers: state that forward changes."""

from __future__ import annotations

from types import MethodType

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase


def lend(model: nn.Module) -> None:
    """Let a forward leave no statistics, and still take part in what processes do together."""
    model.eval()
    for module in model.modules():
        own = getattr(module, "lend", None)  # of layers that take means over processes
        if own is not None:
            own()


def running_statistics(model: nn.Module) -> list[tuple[Tensor, Tensor]]:
    """Return (running mean, running variance) of each layer that collects them, as they are."""
    return [
        (module.running_mean, module.running_var)
        for module in model.modules()
        if isinstance(module, _NormBase)
        and module.running_mean is not None
        and module.running_var is not None
        and not is_held(module)
    ]


def hold_statistics(layer: nn.Module) -> None:
    """Keep a layer in eval mode, whatever mode its model is put in, until it is released.

    So it normalises by the statistics that it has, and collects none.
    """
    layer.train(False)
    # a bound method, which a copy of the model binds to its own layer
    layer.train = MethodType(_stays_in_eval, layer)  # type: ignore[method-assign]


def release_statistics(layer: nn.Module, *, training: bool) -> None:
    """Let a layer that is held collect statistics again; put it in that mode."""
    del layer.train  # the instance's own: the class's is seen again
    layer.train(training)


def is_held(layer: nn.Module) -> bool:
    """Say whether a layer is kept in eval mode."""
    return "train" in vars(layer)


def _stays_in_eval(layer: nn.Module, mode: bool = True) -> nn.Module:
    return layer
