"""What a network says before it is trained."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from training_core.examples import Examples


def untrained_outputs(model: nn.Module, examples: Examples) -> Tensor:
    """Return outputs as a first training step has them, without chance; float32, first dimension N.

    Dropout is off. Layers that keep running statistics take the batch's own: theirs are still the
    zeros and ones that they were made with. The model is left as it was.

    Args:
        model: On the CPU.
        examples: At least two, for BatchNorm.
    """
    modes = [(module, module.training) for module in model.modules()]
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    model.eval()
    for module in model.modules():
        if isinstance(module, _NormBase) and module.track_running_stats:
            module.train()
    try:
        with torch.no_grad():
            outputs: Tensor = model(**examples.arrays)
            return outputs.float().clone()
    finally:
        for module, mode in modes:
            module.training = mode
        for buffer, value in buffers:
            buffer.copy_(value)
