"""How far one step moved the weights."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


class UpdateNorm:
    """Compares the weights before and after the optimiser's step, in a measured step.

    It holds one copy of the weights in between. Activations are gone by then, so the peak of
    memory hardly rises.

    Args:
        weights: Of this rank: parameters, shards, or the flat buffer that holds them all.
    """

    def __init__(self, weights: Iterable[Tensor]) -> None:
        self._weights = [_local(weight) for weight in weights]
        self._before: list[Tensor] = []

    def before(self) -> None:
        """Note the weights."""
        self._before = [weight.clone() for weight in self._weights]

    def squared(self) -> Tensor:
        """Return the squared 2-norm of this rank's update: float64 scalar on the device.

        Shards add up over ranks; replicas are the same on each. The note is forgotten.
        """
        changes = [
            torch.linalg.vector_norm(weight - before, dtype=torch.float64)
            for weight, before in zip(self._weights, self._before, strict=True)
        ]
        self._before = []
        return torch.stack(changes).square().sum()


def _local(weight: Tensor) -> Tensor:
    """Return what this rank holds of a weight, sharing its memory."""
    shard = weight.detach()
    return shard.to_local() if hasattr(shard, "to_local") else shard
