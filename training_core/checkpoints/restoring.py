"""Loading a checkpoint into a training in place, on any number of ranks.

DCP's planner works out which saved pieces overlap what this rank holds, so what two ranks with
replicas have saved is loaded by four with shards, and the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadPlan

from training_core.checkpoints.agreement import agreed
from training_core.checkpoints.catalogue import Checkpoints, chunk_view, whole_tensor
from training_core.checkpoints.live import AVERAGE, MODEL, OPTIMISER, LiveState
from training_core.checkpoints.manifest import Chunk, Manifest, StoredTensor, dtype_of
from training_core.errors import ConfigurationError
from training_core.parallel.strategy import Strategy


@dataclass(frozen=True)
class Restored:
    """The checkpoint that training goes on from; weights and moments are loaded already.

    Attributes:
        manifest: Its step, samples and metrics.
        progress: As it was given to `Saver.begin`; tuples have become lists.
        extra: As it was given there.
        own: As this rank gave it there; None if the checkpoint was saved by fewer ranks.
    """

    manifest: Manifest
    progress: dict[str, Any]
    extra: dict[str, Tensor]
    own: dict[str, Tensor] | None


def load(
    checkpoints: Checkpoints, manifest: Manifest, live: LiveState, strategy: Strategy
) -> Restored | None:
    """Load a checkpoint if every rank can read it whole; all ranks together.

    Each rank verifies what it needs; then they agree; only then is anything changed. If a rank
    finds damage, all ranks report it, and None is returned.

    Raises:
        ConfigurationError: The checkpoint is of another model or optimiser.
    """
    live.refresh()
    extra = _stored_below(manifest, "extra.")
    own = _stored_below(manifest, f"rank.{strategy.rank}.")
    read: list[tuple[_Loading, dict[str, Tensor]]] = []

    def verify() -> bool:
        where = checkpoints.key(manifest.step, "manifest.json")
        loading = _Loading(manifest, live.tensors, where=where)
        small = (c.shard for t in (*extra.values(), *own.values()) for c in t.chunks)
        shards = checkpoints.shards(manifest, loading.shards().union(small))
        if shards is not None:
            read.append((loading, shards))
        return shards is not None

    if not all(agreed(strategy, verify)):
        for reports in strategy.gather(checkpoints.damaged):
            for words in reports:
                checkpoints.report(manifest.step, words)
        return None
    ((loading, shards),) = read
    loading.fill(shards)
    return Restored(
        manifest,
        manifest.progress,
        {name: whole_tensor(stored, shards) for name, stored in extra.items()},
        {name: whole_tensor(stored, shards) for name, stored in own.items()} or None,
    )


class _Loading:
    """What one rank reads of one checkpoint.

    Args:
        manifest: Of the checkpoint.
        tensors: Where it is to be loaded: this rank's live tensors.
        where: The manifest's key, for errors.

    Raises:
        ConfigurationError: The checkpoint is of another model or optimiser.
    """

    def __init__(self, manifest: Manifest, tensors: Mapping[str, Tensor], *, where: str) -> None:
        self._stored = {
            name: stored
            for name, stored in manifest.tensors.items()
            if name.startswith((MODEL, OPTIMISER, AVERAGE))
        }
        _check_same(self._stored, tensors, where)
        self._planner = DefaultLoadPlanner(flatten_state_dict=False, flatten_sharded_tensors=False)
        self._planner.set_up_planner(dict(tensors), _metadata(self._stored))
        self._plan: LoadPlan = self._planner.create_local_plan()

    def shards(self) -> set[str]:
        """Names of the shards that hold something this rank needs."""
        return {self._chunk(item)[1].shard for item in self._plan.items}

    @torch.no_grad()
    def fill(self, shards: dict[str, Tensor]) -> None:
        """Copy everything from verified shards into the live tensors."""
        for item in self._plan.items:
            source = chunk_view(*self._chunk(item), shards)
            for dimension, (offset, length) in enumerate(
                zip(item.storage_offsets, item.lengths, strict=True)
            ):
                source = source.narrow(dimension, offset, length)
            target = self._planner.resolve_tensor(item)
            target.copy_(source)
            self._planner.commit_tensor(item, target)

    def _chunk(self, item: Any) -> tuple[StoredTensor, Chunk]:
        stored = self._stored[item.storage_index.fqn]
        return stored, stored.chunks[item.storage_index.index]


def _check_same(
    stored: Mapping[str, StoredTensor], tensors: Mapping[str, Tensor], where: str
) -> None:
    different = sorted(stored.keys() ^ tensors.keys()) or [
        name
        for name, tensor in tensors.items()
        if (tuple(tensor.shape), tensor.dtype) != (stored[name].size, dtype_of(stored[name]))
    ]
    if different:
        raise ConfigurationError(
            f"{where} is of another model or optimiser: {different[0]} differs"
            + (f", and {len(different) - 1} more" if len(different) > 1 else ""),
            hint="train under another prefix (evertrain run PROJECT --force), or undo the change",
        )


def _metadata(stored: Mapping[str, StoredTensor]) -> Metadata:
    return Metadata(
        {
            name: TensorStorageMetadata(
                TensorProperties(dtype_of(tensor)),
                torch.Size(tensor.size),
                [
                    ChunkStorageMetadata(torch.Size(c.offsets), torch.Size(c.sizes))
                    for c in tensor.chunks
                ],
            )
            for name, tensor in stored.items()
        }
    )


def _stored_below(manifest: Manifest, prefix: str) -> dict[str, StoredTensor]:
    """Return the tensors whose names begin with a prefix, by the rest of their names."""
    return {
        name.removeprefix(prefix): stored
        for name, stored in manifest.tensors.items()
        if name.startswith(prefix)
    }
