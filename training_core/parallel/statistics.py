"""Running statistics of normalisation layers: state that forward changes."""

from __future__ import annotations

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
    """Return (running mean, running variance) of each layer that keeps them, as they are."""
    return [
        (module.running_mean, module.running_var)
        for module in model.modules()
        if isinstance(module, _NormBase)
        and module.running_mean is not None
        and module.running_var is not None
    ]
