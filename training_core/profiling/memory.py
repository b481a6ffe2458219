"""What a step holds in memory: weights, gradients, optimiser state, activations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from training_core.loop import Trainer
from training_core.telemetry.memory import peak_bytes


@dataclass(frozen=True)
class Memory:
    """Bytes of one process.

    Attributes:
        weights, gradients, optimiser: Together, whatever the batch.
        activations: What forward keeps for backward, of one step; grows with the microbatch.
        peak: The most that the process (on a GPU: torch) has held so far.
        whole: What the device has.
    """

    weights: int
    gradients: int
    optimiser: int
    activations: int
    peak: int
    whole: int


class Kept:
    """Counts what forward keeps for backward, each storage once; weights are not counted."""

    def __init__(self, trainer: Trainer) -> None:
        self._weights = {
            each.untyped_storage().data_ptr()
            for each in (*trainer.module.parameters(), *trainer.module.buffers())
        }
        self._seen: dict[int, int] = {}

    @property
    def bytes(self) -> int:
        """Together."""
        return sum(self._seen.values())

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count what is kept in this context."""
        with torch.autograd.graph.saved_tensors_hooks(self._keep, lambda kept: kept):
            yield

    def restart(self) -> None:
        """A new step begins."""
        self._seen.clear()

    def _keep(self, kept: Tensor) -> Tensor:
        storage = kept.untyped_storage()
        if storage.data_ptr() not in self._weights:
            self._seen[storage.data_ptr()] = storage.nbytes()
        return kept


def memory_of(trainer: Trainer, *, activations: int) -> Memory:
    """Return what a trainer holds after some steps."""
    trained = [p for p in trainer.module.parameters() if p.requires_grad]
    states = (
        value
        for optimiser in trainer.update.optimisers
        for state in optimiser.state.values()
        for value in state.values()
        if isinstance(value, Tensor)
    )
    device = trainer.strategy.device
    return Memory(
        weights=sum(p.nbytes for p in trainer.module.parameters()),
        gradients=sum(p.nbytes for p in trained),
        optimiser=sum(value.nbytes for value in states),
        activations=activations,
        peak=peak_bytes(device),
        whole=whole_bytes(device),
    )


def whole_bytes(device: torch.device) -> int:
    """Return the memory that a device has; 0: not known."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return _said_by_kernel("MemTotal")


def free_bytes(device: torch.device) -> int:
    """Return the memory that is free for one more process; 0: not known."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return _said_by_kernel("MemAvailable")


def _said_by_kernel(name: str) -> int:
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith(f"{name}:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
