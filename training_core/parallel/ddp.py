"""Replicated data parallelism: DistributedDataParallel."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from training_core.parallel.group import ProcessGroup


class DataParallel(ProcessGroup):
    """The whole model on each rank; all-reduce runs while backward goes on.

    Buffers are not broadcast at each forward, as DDP does by itself: the running statistics of
    normalisation layers are pooled when they are needed, so that no rank's are thrown away.

    Args:
        device: Of this process.
        static_graph: The same parameters take part in every step.
    """

    def __init__(self, device: torch.device, *, static_graph: bool = False) -> None:
        super().__init__(device)
        self.gradient_factor = float(self.world_size)  # DDP averages over ranks
        self.static_graph = static_graph

    def prepare(self, model: nn.Module) -> nn.Module:
        self._note(model.to(self.device))
        return DistributedDataParallel(
            model,
            device_ids=[self.device.index] if self.device.type == "cuda" else None,
            forward_sync_buffers=False,
            gradient_as_bucket_view=True,
            static_graph=self.static_graph,
        )

    def unwrapped(self, model: nn.Module) -> nn.Module:
        return model.module if isinstance(model, DistributedDataParallel) else model

    def microbatch(
        self, model: nn.Module, *, samples: int, index: int, last: bool
    ) -> AbstractContextManager[Any]:
        assert isinstance(model, DistributedDataParallel)
        return nullcontext() if last else model.no_sync()
