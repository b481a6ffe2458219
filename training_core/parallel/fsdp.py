"""Sharded data parallelism: FSDP2, and HSDP where groups of ranks each hold the whole model."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    fully_shard,
)
from torch.distributed.tensor import DTensor
from torch.nn.modules.batchnorm import _NormBase

from training_core.errors import ConfigurationError
from training_core.parallel.blocks import blocks_of
from training_core.parallel.group import ProcessGroup


class ShardedDataParallel(ProcessGroup):
    """Each rank holds its share of weights, gradients and optimiser state.

    Each repeated block (see `blocks.py`) is gathered when it is needed; then the rest. Gradients
    are summed, not averaged, in fp32.

    Args:
        device: Of this process.
        dtype: What is gathered and computed in; None: fp32.
        replicas: Groups that each hold the whole model (HSDP); 1: one group of all ranks.
        cpu_offload: Keep the shards in the CPU's memory.
    """

    shards = True

    def __init__(
        self,
        device: torch.device,
        *,
        dtype: torch.dtype | None = None,
        replicas: int = 1,
        cpu_offload: bool = False,
    ) -> None:
        if cpu_offload and device.type == "cpu":
            raise ConfigurationError(
                "training.parallel.cpu_offload is set, but training runs on the CPU",
                hint="leave it out: the shards are in the CPU's memory already",
            )
        super().__init__(device)
        if self.world_size % replicas:
            raise ConfigurationError(
                f"training.parallel.replicas is {replicas}, which does not divide the "
                f"{self.world_size} processes",
                hint="choose a divisor of training.processes",
            )
        self.dtype, self.cpu_offload = dtype, cpu_offload
        names: tuple[str, ...] = ("replicate", "shard") if replicas > 1 else ("shard",)
        shape = (replicas, self.world_size // replicas) if replicas > 1 else (self.world_size,)
        self.mesh = init_device_mesh(device.type, shape, mesh_dim_names=names)

    def prepare(self, model: nn.Module) -> nn.Module:
        # an output that is a view loses its hook if changed in place, which the loop never does
        warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
        model = model.to(self.device)
        self.share(model)
        self._note(model)
        reduced = torch.float32 if self.dtype is not None else None
        options: dict[str, Any] = {
            "mesh": self.mesh,
            "mp_policy": MixedPrecisionPolicy(param_dtype=self.dtype, reduce_dtype=reduced),
            "offload_policy": CPUOffloadPolicy() if self.cpu_offload else OffloadPolicy(),
        }
        if self.dtype is not None:  # running statistics are fp32, and so must their layers be
            exact = MixedPrecisionPolicy(torch.float32, torch.float32, output_dtype=self.dtype)
            for module in model.modules():
                if isinstance(module, _NormBase):
                    fully_shard(module, **{**options, "mp_policy": exact})
        for module in [*blocks_of(model), model]:
            fully_shard(module, **options)
        for module in model.modules():
            if isinstance(module, FSDPModule):
                module.set_gradient_divide_factor(1.0)
                module.set_force_sum_reduction_for_comms(True)  # gloo has no scaled sum
        return model

    def microbatch(
        self, model: nn.Module, *, samples: int, index: int, last: bool
    ) -> AbstractContextManager[Any]:
        return self._communicating(model, last)

    @contextmanager
    def _communicating(self, model: nn.Module, last: bool) -> Iterator[None]:
        assert isinstance(model, FSDPModule)
        model.set_requires_gradient_sync(last)
        yield

    def gradient_norm(self, gradients: list[Tensor]) -> Tensor:
        norm = torch.nn.utils.get_total_norm(gradients)
        whole = norm.full_tensor() if isinstance(norm, DTensor) else norm
        return whole.to(self.device)
