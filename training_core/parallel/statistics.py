"""Running statistics of normalisation layers: state that forward changes."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase


def running_statistics(model: nn.Module) -> list[tuple[Tensor, Tensor]]:
    """Return (running mean, running variance) of each layer that keeps them, as they are."""
    return [
        (module.running_mean, module.running_var)
        for module in model.modules()
        if isinstance(module, _NormBase)
        and module.running_mean is not None
        and module.running_var is not None
    ]
