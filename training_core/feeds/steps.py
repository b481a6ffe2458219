"""Where an epoch's steps lie, and which of their samples are this rank's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from training_core.feeds.batches import Sharing
from training_core.feeds.order import Integers


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive steps of equal size within an epoch.

    Attributes:
        epoch: Counted from 0.
        first: Position of the first sample in the epoch.
        size: Samples a step.
        steps: How many.
        samples: Global position of the first sample.
    """

    epoch: int
    first: int
    size: int
    steps: int
    samples: int

    @property
    def last(self) -> int:
        """Position after the last sample in the epoch."""
        return self.first + self.size * self.steps

    @property
    def samples_after(self) -> range:
        """Global position after each step."""
        return range(
            self.samples + self.size,
            self.samples + self.size * self.steps + 1,
            self.size,
        )


def stretches(*, count: int, batch_size: int, samples: int, most: int) -> Iterator[Stretch]:
    """Yield stretches of at most `most` steps, without end; an epoch's short last step is its own.

    Args:
        count: Samples of an epoch.
        batch_size: Samples a step.
        samples: Global position to start at.
        most: Steps at once.
    """
    while True:
        epoch, first = divmod(samples, count)
        left = count - first
        steps, size = min(most, left // batch_size), batch_size
        if steps == 0:
            steps, size = 1, left
        yield Stretch(epoch, first, size, steps, samples)
        samples += steps * size


@dataclass(frozen=True, slots=True)
class Cut:
    """This rank's microbatches of a step.

    Attributes:
        size: Samples of the step, over all ranks.
        columns: int64, places in the step of this rank's rows, part after part.
        sizes: Rows of each part, at least 1.
        weights: None, or zeros(1) for a part that has no sample and lends the step's first.
    """

    size: int
    columns: Integers
    sizes: list[int]
    weights: list[Tensor | None]

    @classmethod
    def of(cls, sharing: Sharing, size: int) -> Cut:
        """Cut a step of `size` samples."""
        parts = [np.arange(part, size, sharing.parts, dtype=np.int64) for part in sharing.mine]
        weights = [None if len(part) else torch.zeros(1) for part in parts]
        parts = [part if len(part) else np.zeros(1, np.int64) for part in parts]
        return cls(size, np.concatenate(parts), [len(part) for part in parts], weights)

    def mine(self, samples: Integers) -> Integers:
        """Return this rank's part of some steps' samples, step after step."""
        if len(self.sizes) == 1 and self.sizes[0] == self.size:
            return samples  # one rank, one microbatch
        part: Integers = samples.reshape(-1, self.size)[:, self.columns].reshape(-1)
        return part
