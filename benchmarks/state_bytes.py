"""How much of weights and optimiser state a rank holds under FSDP2."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

from benchmarks.peers.ours import trainer_of
from benchmarks.peers.run import Run
from benchmarks.workloads import Workload
from training_core.loop import Trainer
from training_core.parallel.single import SingleProcess


def fsdp_state_ratio(workload: Workload) -> float:
    """Return the bytes of the fullest rank / those of one process, after two steps.

    All ranks call it together.
    """
    workload = replace(workload, steps=2, warmup=0)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    with tempfile.TemporaryDirectory() as folder:
        run = Run(
            workload=workload,
            model=workload.build(),
            folder=Path(folder),
            rank=rank,
            world_size=world_size,
            features=False,
        )
        sharded = trainer_of(run, parallel={"strategy": "fsdp"})
        sharded.fit()
        if isinstance(sharded.module, FSDPModule):  # the last forward has left the root gathered
            sharded.module.reshard()
        alone = replace(run, model=workload.build(), rank=0, world_size=1)
        whole = trainer_of(alone, strategy=SingleProcess(torch.device("cpu")))
        whole.fit()
    fullest = torch.tensor(state_bytes(sharded))
    dist.all_reduce(fullest, dist.ReduceOp.MAX)
    return fullest.item() / state_bytes(whole)


def state_bytes(trainer: Trainer) -> int:
    """Return the bytes that this rank's weights and optimiser state take: of whole storages."""
    storages = [_local(tensor).untyped_storage() for tensor in _tensors(trainer)]
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


def _tensors(trainer: Trainer) -> Iterator[Tensor]:
    yield from trainer.module.parameters()
    for optimiser in trainer.update.optimisers:
        for state in optimiser.state.values():
            yield from (value for value in state.values() if isinstance(value, Tensor))


def _local(tensor: Tensor) -> Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor
