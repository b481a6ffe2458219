"""What is done to a model before training: memory layout, recomputation, compilation, placing."""

from __future__ import annotations

import shutil

import torch
from torch import nn

from training_core.errors import ConfigurationError
from training_core.parallel.blocks import blocks_of, recompute_in_backward
from training_core.parallel.strategy import Strategy
from training_core.settings import TrainingSettings


def set_up_model(model: nn.Module, settings: TrainingSettings, strategy: Strategy) -> nn.Module:
    """Return the model to call in training; names of its parameters do not change.

    Raises:
        ConfigurationError: There are no blocks to recompute, or nothing to compile with.
    """
    if settings.channels_last:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    blocks = blocks_of(model)
    if settings.activation_checkpointing:
        if not blocks:
            raise ConfigurationError(
                f"training.activation_checkpointing is set, but {type(model).__name__} has no "
                "repeated blocks",
                hint="put the model's repeated layers into an nn.ModuleList",
            )
        for block in blocks:
            recompute_in_backward(block)
    if settings.compile:
        if strategy.device.type == "cpu" and not any(map(shutil.which, ("c++", "g++", "clang++"))):
            raise ConfigurationError(
                "training.compile is set, but there is no C++ compiler to compile with on a CPU",
                hint="install g++, or leave training.compile out",
            )
        for module in blocks or [model]:
            module.compile()  # in place, so a sharded block is still compiled as one
    return strategy.prepare(model)
