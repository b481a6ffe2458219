"""Chunks: the steps that a feed prepares at once, and how their rows become batches.

Gathering the rows of many steps in one call, then handing out views of them, costs a few
microseconds a step; a gather for each step costs tens.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from itertools import repeat
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, split_with_sizes

from training_core.errors import ConfigurationError
from training_core.examples import Examples
from training_core.feeds.batches import Microbatch, Sharing, StepBatch
from training_core.feeds.rows import Buffers, Columns, columns, row_bytes
from training_core.feeds.sampling import Sampling
from training_core.feeds.steps import Cut, Stretch, stretches

_STEPS = 64
_BYTES = 8 * 2**20  # larger chunks fall out of the caches before they are used


class ChunkedFeed(ABC):
    """A feed (`batches.Feed`) that prepares chunks of steps."""

    @abstractmethod
    def __len__(self) -> int:
        """Samples of an epoch."""

    @abstractmethod
    def chunks(
        self, sharing: Sharing, *, samples: int, buffers: int = 1, pin: bool = False
    ) -> Generator[list[StepBatch], None, None]:
        """Yield this rank's part of every step as `steps` does, but many steps at once.

        Args:
            sharing: How ranks share a step.
            samples: Samples already consumed, over all ranks.
            buffers: A chunk is valid until so many more have been asked for.
            pin: Prepare them in page-locked memory.
        """

    def steps(self, sharing: Sharing, *, samples: int) -> Generator[StepBatch, None, None]:
        """Yield this rank's part of every step from a global position on (see `batches.Feed`)."""
        for chunk in self.chunks(sharing, samples=samples):
            yield from chunk


class Reader(Protocol):
    """The samples of one epoch, in its order."""

    def read(self, stretch: Stretch, cut: Cut, into: Columns) -> NDArray[np.float32] | None:
        """Fill memory with this rank's rows of a stretch, step after step and part after part.

        Returns:
            float32 [samples of the stretch]: the units of all samples, of all ranks; None: one
            each.
        """


class RowFeed(ChunkedFeed):
    """A feed of rows that every rank can read by itself.

    Args:
        like: Gives names, types and the shapes of a row.
        count: Samples of an epoch.
        sampling: How often each row is drawn; None: once an epoch.

    Raises:
        ConfigurationError: There are no samples.
    """

    def __init__(self, like: Examples, count: int, *, sampling: Sampling | None = None) -> None:
        if not count:
            raise ConfigurationError("there are no examples to feed")
        self._like, self._count, self.sampling = like, count, sampling

    def __len__(self) -> int:
        return self._count

    @abstractmethod
    def _reader(self, *, seed: int, epoch: int) -> Reader:
        """Return the reader of an epoch."""

    @abstractmethod
    def stored(self, first: int, last: int) -> Examples:
        """Return rows in the order in which they are stored, whatever is drawn."""

    def chunks(
        self, sharing: Sharing, *, samples: int, buffers: int = 1, pin: bool = False
    ) -> Generator[list[StepBatch], None, None]:
        """Yield this rank's part of every step, many steps at once (see `ChunkedFeed`)."""
        memory = Buffers(self._like, count=buffers, pin=pin)
        epoch = -1
        for stretch in stretches(
            count=len(self),
            batch_size=sharing.batch_size,
            samples=samples,
            most=steps_at_once(self._like, sharing),
        ):
            if stretch.epoch != epoch:
                epoch = stretch.epoch
                reader = self._reader(seed=sharing.seed, epoch=epoch)
            cut = Cut.of(sharing, stretch.size)
            examples = memory.next(len(cut.columns) * stretch.steps)
            units = reader.read(stretch, cut, columns(examples))
            sizes, weights = cut.sizes * stretch.steps, cut.weights * stretch.steps
            yield batches(examples, stretch, sizes=sizes, weights=weights, units=units)


def steps_at_once(like: Examples, sharing: Sharing) -> int:
    """Return how many steps make a chunk.

    Args:
        like: An example.
        sharing: How ranks share a step.
    """
    rows = max(1, sharing.batch_size * len(sharing.mine) // sharing.parts)
    return min(_STEPS, max(1, _BYTES // (rows * row_bytes(like))))


def batches(
    examples: Examples,
    stretch: Stretch,
    *,
    sizes: list[int],
    weights: list[Tensor | None],
    units: NDArray[np.float32] | None,
) -> list[StepBatch]:
    """Hand out the rows of a stretch as its steps' batches: views, no copies.

    Args:
        examples: This rank's rows, part after part and step after step.
        stretch: The steps.
        sizes: Rows of each part of each step.
        weights: Of each part of each step.
        units: Units of all samples of the stretch, of all ranks; None: one each.
    """
    named = (
        zip(repeat(name), split_with_sizes(array, sizes)) for name, array in examples.arrays.items()
    )
    fields = [map(dict, zip(*named, strict=True)), split_with_sizes(examples.target, sizes)]
    if examples.units is not None:
        fields.append(split_with_sizes(examples.units, sizes))
    if examples.teacher is not None:
        fields += [] if examples.units is not None else [repeat(None)]
        fields.append(split_with_sizes(examples.teacher, sizes))
    microbatches = list(map(Microbatch, map(Examples, *fields), weights))
    each = len(sizes) // stretch.steps
    groups = [microbatches[start : start + each] for start in range(0, len(sizes), each)]
    totals = _totals(stretch, units)
    return list(map(StepBatch, groups, totals, repeat(stretch.size), stretch.samples_after))


def _totals(stretch: Stretch, units: NDArray[np.float32] | None) -> list[float]:
    """Return each step's units."""
    if units is None:
        return [float(stretch.size)] * stretch.steps
    totals: list[float] = units.reshape(stretch.steps, -1).sum(1, dtype=np.float64).tolist()
    return totals
