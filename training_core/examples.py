"""Examples in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from training_core.feeds.order import order as order
from training_core.feeds.order import steps_in as steps_in
from training_core.task import Preprocessor, Task


@dataclass(frozen=True)
class Examples:
    """N examples as the network gets them.

    Attributes:
        arrays: Inputs by name, first dimension N.
        target: float32 [N], no NaN.
        units: float32 [N], how many units, such as tokens, each example's summed loss covers;
            None: one each.
    """

    arrays: dict[str, Tensor]
    target: Tensor
    units: Tensor | None = None

    @classmethod
    def from_frame(cls, task: Task, preprocessor: Preprocessor, frame: pd.DataFrame) -> Examples:
        """Turn raw rows, every one with a label, into examples.

        Raises:
            ValueError: A row has no label.
        """
        target = task.target(frame)
        if np.isnan(target).any():
            raise ValueError(f"{int(np.isnan(target).sum())} rows have no label")
        arrays = {name: torch.from_numpy(a) for name, a in preprocessor.transform(frame).items()}
        # a copy: pandas lends its memory read-only
        return cls(arrays, torch.from_numpy(target.copy()))

    def __len__(self) -> int:
        return len(self.target)

    def take(self, rows: Tensor | slice) -> Examples:
        """Return the examples of some rows, in the order given."""
        return self._each(lambda tensor: tensor[rows])

    def to(self, device: torch.device, *, non_blocking: bool = False) -> Examples:
        """Return them on a device; `non_blocking` overlaps the copy if they are pinned."""
        return self._each(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin(self) -> Examples:
        """Return a copy in page-locked memory, from which a GPU can copy by itself."""
        return self._each(lambda tensor: tensor.pin_memory())

    def contiguous(self) -> Examples:
        """Return them with each tensor's rows one after another in memory."""
        return self._each(lambda tensor: tensor.contiguous())

    def _each(self, change: Callable[[Tensor], Tensor]) -> Examples:
        arrays = {name: change(array) for name, array in self.arrays.items()}
        units = None if self.units is None else change(self.units)
        return Examples(arrays, change(self.target), units)


@dataclass(frozen=True)
class Microbatch:
    """What one process works on at once.

    Attributes:
        examples: At least one example.
        weight: float32 [N]; 0 marks an example that only keeps the ranks in step.
    """

    examples: Examples
    weight: Tensor


@dataclass(frozen=True)
class StepBatch:
    """One rank's part of one optimiser step.

    Attributes:
        microbatches: As many on every rank, so that collectives match.
        count: Examples of the step over all ranks and microbatches.
        samples_after: Global position once this step is done.
    """

    microbatches: list[Microbatch]
    count: int
    samples_after: int


def step_batches(
    examples: Examples,
    *,
    batch_size: int,
    accumulation: int,
    seed: int,
    samples: int,
    rank: int,
    world_size: int,
) -> Iterator[StepBatch]:
    """Yield this rank's part of every step from a global position on, without end.

    Which samples a step holds depends on seed and position alone; ranks divide them. An epoch's
    last batch is short rather than padded or dropped, so each sample is seen once an epoch.

    Args:
        examples: All examples of the split.
        batch_size: Examples a step, over all ranks and microbatches.
        accumulation: Microbatches a step on each rank.
        seed: Of the order.
        samples: Samples already consumed, over all ranks.
        rank: This process.
        world_size: Number of processes.
    """
    count = len(examples)
    epoch = -1
    while True:
        if samples // count != epoch:
            epoch = samples // count
            permutation = order(seed=seed, epoch=epoch, count=count)
        offset = samples % count
        rows = permutation[offset : offset + batch_size]
        samples += len(rows)
        mine = rows[rank::world_size]
        microbatches = []
        for part in torch.tensor_split(mine, accumulation):
            weight = torch.ones(len(part))
            if len(part) == 0:  # fewer samples than ranks: take part, but count for nothing
                part, weight = rows[:1], torch.zeros(1)
            microbatches.append(Microbatch(examples.take(part), weight))
        yield StepBatch(microbatches, len(rows), samples)
