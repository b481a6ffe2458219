"""Numbers of training: fp32, or bf16/fp16 autocast over fp32 master weights."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from training_core.errors import ConfigurationError


class Precision:
    """What forward and backward compute in.

    Attributes:
        name: fp32, bf16 or fp16.
        scaler: Scales the loss under fp16, and does nothing otherwise.
    """

    def __init__(self, name: str, device: torch.device) -> None:
        self.name = name
        self.device = device
        self.dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(name)
        self.scaler = torch.amp.GradScaler(device.type, enabled=name == "fp16")

    def autocast(self) -> AbstractContextManager[Any]:
        """Return the context in which the model is called."""
        if self.dtype is None:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.dtype)


def choose_precision(name: str, device: torch.device) -> Precision:
    """Turn a setting into a precision that this device has.

    Raises:
        ConfigurationError: The device cannot compute in it.
    """
    on_gpu = device.type == "cuda"
    if name == "auto":
        name = "bf16" if on_gpu and torch.cuda.is_bf16_supported(False) else "fp32"
    if name == "bf16" and on_gpu and not torch.cuda.is_bf16_supported(False):
        raise ConfigurationError(
            f"training.precision is bf16, but {torch.cuda.get_device_name(device)} has none",
            hint="set training.precision to fp16 or auto",
        )
    return Precision(name, device)
