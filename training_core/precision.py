"""What training computes in: fp32, tf32, or bf16/fp16 autocast over fp32 master weights."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from training_core.errors import ConfigurationError


class Precision:
    """What forward and backward compute in.

    Attributes:
        name: fp32, tf32, bf16 or fp16.
        dtype: What autocast computes in; None: no autocast.
        scaler: Scales the loss under fp16, and does nothing otherwise.
    """

    def __init__(self, name: str, device: torch.device) -> None:
        self.name = name
        self.device = device
        self.dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(name)
        self.scaler = torch.amp.GradScaler(device.type, enabled=name == "fp16")
        self._plain: AbstractContextManager[Any] = nullcontext()

    def autocast(self) -> AbstractContextManager[Any]:
        """Return the context in which the model is called."""
        if self.dtype is None:
            return self._plain
        return torch.autocast(self.device.type, dtype=self.dtype)

    def set_up(self) -> None:
        """Let matrix products of fp32 tensors use tf32, or see to it that they do not."""
        torch.set_float32_matmul_precision("high" if self.name == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = self.name == "tf32"


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
    if name == "tf32" and not (on_gpu and torch.cuda.get_device_capability(device) >= (8, 0)):
        where = torch.cuda.get_device_name(device) if on_gpu else "a CPU"
        raise ConfigurationError(
            f"training.precision is tf32, but {where} has none (NVIDIA GPUs have it since Ampere)",
            hint="set training.precision to fp32 or auto",
        )
    return Precision(name, device)
