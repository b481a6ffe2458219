"""The contract of all strategies: one process, replicated, sharded, or reproducible.

A strategy is one small class in a file of its own; the loop knows nothing else of processes.
Tensor or pipeline parallelism would be one more file.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch
from torch import Tensor, nn


class Strategy(Protocol):
    """How the processes of one training work together.

    Attributes:
        rank: Of this process, from 0.
        world_size: Number of processes.
        device: Where this process computes.
        gradient_factor: What a loss that is divided by the global count is multiplied with, so
            that the strategy's own way of combining gradients gives their exact sum.
        shards: Whether each rank holds only a part of the weights and of the optimiser's state.
        flat: Whether weights and gradients may be moved into one flat buffer.
    """

    rank: int
    world_size: int
    device: torch.device
    gradient_factor: float
    shards: bool
    flat: bool

    @property
    def parts(self) -> int | None:
        """Microbatches a step over all ranks, where the strategy fixes it; else None."""

    def prepare(self, model: nn.Module) -> nn.Module:
        """Return the model to call in training, on this process's device."""

    def unwrapped(self, model: nn.Module) -> nn.Module:
        """Return the user's own module of a prepared model."""

    def microbatch(
        self, model: nn.Module, *, samples: int, index: int, last: bool
    ) -> AbstractContextManager[Any]:
        """Return the context of a microbatch's forward and backward.

        Args:
            model: As prepared.
            samples: Global position after the step.
            index: Of the microbatch on this rank, from 0.
            last: Whether its backward may communicate.
        """

    def gradients_ready(self) -> None:
        """Combine gradients after the last backward, where backward itself does not."""

    def gradient_norm(self, gradients: list[Tensor]) -> Tensor:
        """Return the 2-norm over all gradients of all ranks: float32 scalar on the device."""

    def synchronise_statistics(self) -> None:
        """Give the running statistics of normalisation layers the same values on all ranks."""

    def sum_(self, values: Tensor) -> Tensor:
        """Add a tensor up over all processes, in place."""

    def gather(self, value: Any) -> list[Any]:
        """Return every process's value, in order of rank."""

    def close(self) -> None:
        """Leave the group."""
