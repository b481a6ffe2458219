"""The manifest of a checkpoint: plain JSON that says where each piece of each tensor lies.

It holds what torch.distributed.checkpoint's metadata holds (names, sizes, chunks), which DCP itself
would pickle. Its seal, a sha256 over the rest of it, makes a flipped digit in it as visible as one
in a shard.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import torch

from training_core.checkpoints.numbers import from_json, to_json

FORMAT = "evertrain/checkpoint/2"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A rectangular piece of a tensor, in row-major order at some place in a shard.

    Attributes:
        offsets: Of its first element in the tensor, one for each dimension.
        sizes: As many.
        shard: The shard's name.
        start: Its first byte in the shard.
    """

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    shard: str
    start: int


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor as it lies in shards: `dtype` is torch's name for it, `size` its global shape."""

    dtype: str
    size: tuple[int, ...]
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Shard:
    """What a shard must be: its hash, and its length in bytes."""

    sha256: str
    size: int


@dataclass(frozen=True)
class Manifest:
    """What a checkpoint holds.

    Attributes:
        step: Optimiser steps done.
        samples: Samples consumed, over all ranks.
        metrics: Validation metrics at this step; empty when it was saved for another reason.
        progress: What training had to remember that is no tensor.
        tensors: By name: `model.…`, `optimiser.…`, `average.…` where weights are averaged,
            `extra.…`, and each rank's own `rank.<r>.…`.
        shards: By name.
        seal: Hash of all this.
    """

    step: int
    samples: int
    metrics: dict[str, float]
    progress: dict[str, Any]
    tensors: dict[str, StoredTensor]
    shards: dict[str, Shard]
    seal: str = ""

    def to_json(self) -> bytes:
        """Encode it with its seal, which is computed anew."""
        content = {
            "format": FORMAT,
            "step": self.step,
            "samples": self.samples,
            "metrics": self.metrics,
            "progress": self.progress,
            "tensors": tensors_to_data(self.tensors),
            "shards": {name: [s.sha256, s.size] for name, s in self.shards.items()},
        }
        return to_json({**content, "sha256": _seal(content)})

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Decode it and check that it makes sense.

        Raises:
            ValueError: It is damaged, or no manifest at all.
        """
        content = from_json(data)
        try:
            if to_json(content) != data:  # 1e-3 and 1E-3 are one number, but not the same bytes
                raise ValueError("it is not as it was written")
            seal = content.pop("sha256")
            if seal != _seal(content):
                raise ValueError("its sha256 is another")
            if content["format"] != FORMAT:
                raise ValueError(f"its format is {content['format']}, not {FORMAT}")
            found = cls(
                step=content["step"],
                samples=content["samples"],
                metrics=content["metrics"],
                progress=content["progress"],
                tensors=tensors_from_data(content["tensors"]),
                shards={name: Shard(*shard) for name, shard in content["shards"].items()},
                seal=seal,
            )
            for name, tensor in found.tensors.items():
                _check(name, tensor, found.shards)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error
        return found


def dtype_of(tensor: StoredTensor) -> torch.dtype:
    """Return torch's dtype of a stored tensor; ValueError if torch has none of that name."""
    found = getattr(torch, tensor.dtype, None)
    if not isinstance(found, torch.dtype):
        raise ValueError(f"{tensor.dtype!r} is no dtype")
    return found


def tensors_to_data(tensors: dict[str, StoredTensor]) -> dict[str, Any]:
    """Turn a table of tensors into plain data."""
    return {
        name: [t.dtype, t.size, [[c.offsets, c.sizes, c.shard, c.start] for c in t.chunks]]
        for name, t in tensors.items()
    }


def tensors_from_data(data: dict[str, Any]) -> dict[str, StoredTensor]:
    """Turn plain data back into a table of tensors."""
    return {
        name: StoredTensor(
            dtype,
            tuple(size),
            tuple(Chunk(tuple(o), tuple(s), shard, start) for o, s, shard, start in chunks),
        )
        for name, (dtype, size, chunks) in data.items()
    }


def merged(tables: Iterable[dict[str, StoredTensor]]) -> dict[str, StoredTensor]:
    """Join what each rank holds of each tensor into one table."""
    whole: dict[str, StoredTensor] = {}
    for table in tables:
        for name, tensor in table.items():
            known = whole.get(name)
            chunks = tensor.chunks if known is None else known.chunks + tensor.chunks
            whole[name] = StoredTensor(tensor.dtype, tensor.size, chunks)
    return whole


def _check(name: str, tensor: StoredTensor, shards: dict[str, Shard]) -> None:
    """Refuse chunks that lie outside their shard or tensor, or that do not fill the tensor."""
    width, filled = dtype_of(tensor).itemsize, 0
    for chunk in tensor.chunks:
        count = math.prod(chunk.sizes)
        filled += count
        last_byte = chunk.start + count * width
        inside = all(
            offset >= 0 and size >= 0 and offset + size <= whole
            for offset, size, whole in zip(chunk.offsets, chunk.sizes, tensor.size, strict=True)
        )
        fits = chunk.start >= 0 and last_byte <= shards[chunk.shard].size
        if not inside or not fits or chunk.start % width:
            raise ValueError(f"a chunk of {name} lies outside its shard or tensor")
    if filled != math.prod(tensor.size):
        raise ValueError(f"the chunks of {name} do not fill it")


def _seal(content: dict[str, Any]) -> str:
    return hashlib.sha256(to_json(content)).hexdigest()
