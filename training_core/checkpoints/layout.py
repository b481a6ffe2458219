"""Which rank writes which piece of which tensor, and where in its shard.

DCP's planner decides: what is replicated is written once, spread over the ranks by size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner

from training_core.checkpoints.live import local
from training_core.checkpoints.manifest import Chunk, StoredTensor
from training_core.parallel.strategy import Strategy

_ALIGNMENT = 64  # bytes: of a cache line, and of what torch allocates


@dataclass(frozen=True, slots=True)
class Place:
    """A piece of a tensor in this rank's shard.

    Attributes:
        name: Of the tensor.
        dtype: Of the tensor.
        whole: The tensor's global shape.
        offsets: Of the piece in the tensor.
        sizes: The piece's shape.
        start: Its first byte in the shard.
    """

    name: str
    dtype: torch.dtype
    whole: tuple[int, ...]
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    start: int

    @property
    def end(self) -> int:
        """The byte after its last one."""
        return self.start + math.prod(self.sizes) * self.dtype.itemsize

    def view(self, memory: Tensor) -> Tensor:
        """Return the piece's part of a shard's bytes as a tensor; no copy."""
        return memory[self.start : self.end].view(self.dtype).view(self.sizes)


def share(tensors: Mapping[str, Tensor], strategy: Strategy) -> list[Place]:
    """Decide what this rank writes; all ranks together.

    Args:
        tensors: The same names on every rank: whole, replicated tensors, or DTensors.
        strategy: The ranks.
    """
    planner = DefaultSavePlanner(flatten_state_dict=False, flatten_sharded_tensors=False)
    planner.set_up_planner(dict(tensors), is_coordinator=strategy.rank == 0)
    plans, _ = planner.create_global_plan(strategy.gather(planner.create_local_plan()))
    places, start = [], 0
    for item in plans[strategy.rank].items:
        written = item.tensor_data
        assert written is not None
        place = Place(
            item.index.fqn,
            written.properties.dtype,
            tuple(written.size),
            tuple(written.chunk.offsets),
            tuple(written.chunk.sizes),
            start,
        )
        places.append(place)
        start = aligned(place.end)
    return places


def append(places: list[Place], tensors: Mapping[str, Tensor]) -> list[Place]:
    """Put whole tensors that only this rank writes behind what it writes anyway."""
    start = aligned(places[-1].end) if places else 0
    added = []
    for name, tensor in tensors.items():
        size = tuple(tensor.shape)
        added.append(Place(name, tensor.dtype, size, (0,) * len(size), size, start))
        start = aligned(added[-1].end)
    return added


def aligned(position: int) -> int:
    """Return the next position at which a piece may start."""
    return -(-position // _ALIGNMENT) * _ALIGNMENT


def source(place: Place, tensors: Mapping[str, Tensor]) -> Tensor:
    """Return what is copied to a place: this rank's part of the tensor; no copy."""
    found = local(tensors[place.name])
    assert tuple(found.shape) == place.sizes, place.name
    return found


def table(places: list[Place], shard: str) -> dict[str, StoredTensor]:
    """Say for a manifest where this rank's pieces lie."""
    return {
        place.name: StoredTensor(
            str(place.dtype).removeprefix("torch."),
            place.whole,
            (Chunk(place.offsets, place.sizes, shard, place.start),),
        )
        for place in places
    }
