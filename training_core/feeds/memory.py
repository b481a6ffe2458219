"""Examples in memory, in an order that mixes all of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from training_core.examples import Examples
from training_core.feeds.chunks import RowFeed
from training_core.feeds.order import Integers, permutation
from training_core.feeds.rows import Columns, columns, gather
from training_core.feeds.sampling import Sampling
from training_core.feeds.steps import Cut, Stretch


class MemoryFeed(RowFeed):
    """Feeds examples that lie in memory, the same on every rank, in the order `order.order`.

    Args:
        examples: At least one, on the CPU.
        sampling: How often each is drawn; None: once an epoch.

    Raises:
        ConfigurationError: There are none.
    """

    def __init__(self, examples: Examples, *, sampling: Sampling | None = None) -> None:
        examples = examples.contiguous()
        super().__init__(examples, len(examples), sampling=sampling)
        self._columns = columns(examples)
        self._units = None if examples.units is None else examples.units.numpy()

    def _reader(self, *, seed: int, epoch: int) -> _Reader:
        drawn = permutation(seed=seed, epoch=epoch, count=len(self)).numpy()
        counts = None if self.sampling is None else self.sampling.counts(seed=seed, epoch=epoch)
        if counts is not None:
            drawn = np.repeat(np.arange(len(self), dtype=drawn.dtype), counts)[drawn]
        return _Reader(self._columns, self._units, drawn)

    def stored(self, first: int, last: int) -> Examples:
        """Return rows as they lie in memory."""
        return self._like.take(slice(first, last))


class _Reader:
    def __init__(self, source: Columns, units: NDArray[np.float32] | None, drawn: Integers) -> None:
        self._source, self._units, self._drawn = source, units, drawn

    def read(self, stretch: Stretch, cut: Cut, into: Columns) -> NDArray[np.float32] | None:
        rows = self._drawn[stretch.first : stretch.last]
        gather(self._source, cut.mine(rows), into)
        return None if self._units is None else self._units[rows]
