"""What all strategies with several processes have in common: torchrun's process group."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from training_core.parallel.statistics import running_statistics


class ProcessGroup:
    """The processes that torchrun started: gloo on CPUs, NCCL on GPUs."""

    shards = False
    flat = False
    parts: int | None = None
    gradient_factor = 1.0

    def __init__(self, device: torch.device) -> None:
        if not dist.is_initialized():
            dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo")
        self.device = device
        self.rank = dist.get_rank()
        self.world_size = dist.get_world_size()
        self._model: nn.Module | None = None

    def share(self, model: nn.Module) -> None:
        """Give all ranks rank 0's weights and buffers, whatever each of them began with."""
        with torch.no_grad():
            for value in (*model.parameters(), *model.buffers()):
                dist.broadcast(value, 0)

    def unwrapped(self, model: nn.Module) -> nn.Module:
        return model

    def gradients_ready(self) -> None:
        """Backward has combined them."""

    def gradient_norm(self, gradients: list[Tensor]) -> Tensor:
        return torch.nn.utils.get_total_norm(gradients)

    def synchronise_statistics(self) -> None:
        """Pool means and variances, as if one process had seen what all have seen."""
        # those of now: layers may be held, and released again, while training goes on
        statistics = running_statistics(self._model) if self._model is not None else []
        if statistics:
            means = torch.cat([mean for mean, _ in statistics])
            squares = torch.cat([var for _, var in statistics]) + means.square()
            pooled = self.sum_(torch.stack([means, squares])) / self.world_size
            sizes = [len(mean) for mean, _ in statistics]
            variances = pooled[1] - pooled[0].square()
            for (mean, var), new_mean, new_var in zip(
                statistics,
                torch.split(pooled[0], sizes),
                torch.split(variances, sizes),
                strict=True,
            ):
                mean.copy_(new_mean)
                var.copy_(new_var.clamp_min(0))

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

    def _note(self, model: nn.Module) -> None:
        """Remember a model that is on its device, for its running statistics."""
        self._model = model
