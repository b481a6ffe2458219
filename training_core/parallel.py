"""One process or several: a strategy is one small class behind one contract.

Processes are started by torchrun, which sets RANK, WORLD_SIZE and LOCAL_RANK.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from training_core.errors import ConfigurationError


class Strategy(Protocol):
    """How the processes of one training work together.

    Attributes:
        gradient_factor: What a loss that is normalised by the global count is multiplied with, so
            that the strategy's own way of combining gradients gives their exact sum.
    """

    rank: int
    world_size: int
    device: torch.device
    gradient_factor: float

    def prepare(self, model: nn.Module) -> nn.Module:
        """Return the model to call in training."""

    def accumulate(self, model: nn.Module) -> AbstractContextManager[Any]:
        """Return a context in which backward does not communicate."""

    def sum_(self, values: Tensor) -> Tensor:
        """Add a tensor up over all processes, in place."""

    def gather(self, value: Any) -> list[Any]:
        """Return every process's value, in order of rank."""

    def close(self) -> None:
        """Leave the group."""


class SingleProcess:
    """Everything in this process."""

    rank = 0
    world_size = 1
    gradient_factor = 1.0

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def prepare(self, model: nn.Module) -> nn.Module:
        return model.to(self.device)

    def accumulate(self, model: nn.Module) -> AbstractContextManager[Any]:
        return nullcontext()

    def sum_(self, values: Tensor) -> Tensor:
        return values

    def gather(self, value: Any) -> list[Any]:
        return [value]

    def close(self) -> None:
        pass


class DataParallel:
    """DistributedDataParallel: gloo on CPUs, NCCL on GPUs."""

    def __init__(self, device: torch.device) -> None:
        if not dist.is_initialized():
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        self.device = device
        self.rank = dist.get_rank()
        self.world_size = dist.get_world_size()
        self.gradient_factor = float(self.world_size)  # DDP averages over ranks

    def prepare(self, model: nn.Module) -> nn.Module:
        ids = [self.device.index] if self.device.type == "cuda" else None
        return DistributedDataParallel(model.to(self.device), device_ids=ids)

    def accumulate(self, model: nn.Module) -> AbstractContextManager[Any]:
        assert isinstance(model, DistributedDataParallel)
        return model.no_sync()

    def sum_(self, values: Tensor) -> Tensor:
        dist.all_reduce(values)
        return values

    def gather(self, value: Any) -> list[Any]:
        values: list[Any] = [None] * self.world_size
        dist.all_gather_object(values, value)
        return values

    def close(self) -> None:
        if dist.is_initialized():
            dist.destroy_process_group()


def choose_device(name: str) -> torch.device:
    """Turn `auto`, `cpu` or `cuda` into this process's device.

    Raises:
        ConfigurationError: A GPU is asked for and there is none.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigurationError(
            "training.device is cuda, but torch sees no GPU on this machine",
            hint="set training.device to auto, or give the pod a GPU",
        )
    if name == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    index = int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(index)
    return torch.device("cuda", index)


def choose_strategy(device: torch.device) -> Strategy:
    """Data parallel where torchrun started several processes, else one process."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        return DataParallel(device)
    return SingleProcess(device)


def unwrapped(model: nn.Module) -> nn.Module:
    """Return the user's own module."""
    return model.module if isinstance(model, DistributedDataParallel) else model
