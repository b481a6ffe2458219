"""Orders of samples: pure functions of (seed, epoch), the same on every rank and host.

None of them has state, so any position is found without walking there.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Integers = NDArray[np.integer[Any]]

_PHASES = 4_096


def order(*, seed: int, epoch: int, count: int) -> Tensor:
    """Return the order of an epoch's samples: int64 [count], the same on every rank."""
    return permutation(seed=seed, epoch=epoch, count=count).long()


def permutation(*, seed: int, epoch: int, count: int) -> Tensor:
    """Return `order` as int32 where that can hold it: drawn in half the time, from less memory."""
    generator = torch.Generator().manual_seed((seed * 1_000_003 + epoch) % 2**63)
    dtype = torch.int32 if count < 2**31 else torch.int64
    return torch.randperm(count, generator=generator, dtype=dtype)


def steps_in(*, samples: int, count: int, batch_size: int) -> int:
    """Return how many steps it takes to consume `samples` of a split of `count` examples."""
    per_epoch = -(-count // batch_size)
    epochs, rest = divmod(samples, count)
    return epochs * per_epoch + -(-rest // batch_size)


@dataclass(frozen=True, slots=True)
class Window:
    """Neighbouring blocks of a block order, whose rows are mixed.

    Attributes:
        number: Of the window in its epoch.
        first: Position of its first sample in the epoch.
        last: Position after its last sample.
        blocks: int64, in the order in which they are laid one after another.
    """

    number: int
    first: int
    last: int
    blocks: Integers


class BlockOrder:
    """Block shuffle: an epoch's blocks are permuted, then the rows of each window of blocks.

    Reading is sequential within a block, and only one window has to be in memory. Building it takes
    time in proportion to the number of blocks, finding a position its logarithm.

    Args:
        lengths: int64 [blocks], rows of each block, all above 0.
        window_blocks: Blocks whose rows are mixed.
        seed: Of the order.
        epoch: Counted from 0.
    """

    def __init__(self, lengths: Integers, *, window_blocks: int, seed: int, epoch: int) -> None:
        self._key = (seed, epoch)
        self._window_blocks = window_blocks
        self._blocks = torch.randperm(len(lengths), generator=_generator(seed, epoch)).numpy()
        ends = np.cumsum(lengths[self._blocks])
        last_blocks = np.arange(window_blocks - 1, len(ends) + window_blocks - 1, window_blocks)
        self._ends = ends[np.minimum(last_blocks, len(ends) - 1)]

    def window_at(self, position: int) -> Window:
        """Return the window that holds a position of the epoch."""
        number = int(np.searchsorted(self._ends, position, side="right"))
        first_block = number * self._window_blocks
        return Window(
            number=number,
            first=int(self._ends[number - 1]) if number else 0,
            last=int(self._ends[number]),
            blocks=self._blocks[first_block : first_block + self._window_blocks],
        )

    def rows(self, window: Window) -> Integers:
        """Return the order of a window's rows: a permutation of range(last - first)."""
        generator = _generator(*self._key, window.number)
        drawn = torch.randperm(window.last - window.first, generator=generator, dtype=torch.int32)
        rows: Integers = drawn.long().numpy()
        return rows


class Interleaving:
    """The common order of shards of any lengths, each drawn from at an even pace.

    Sample i of shard s, counted in the shard's own order, stands at (i + 1 - phase[s]) / length[s]
    of the epoch, with a random phase in [0, 1). Sorting by that is the order; since the samples of
    a shard that fall into a part of the epoch follow from two divisions, it is evaluated in windows
    and a position is found in O(shards · log windows).

    Args:
        lengths: Samples of each shard; a shard may be empty.
        seed: Of the order.
        epoch: Counted from 0.
        window: Samples evaluated at once; the order does not depend on it.
    """

    def __init__(
        self, lengths: Sequence[int], *, seed: int, epoch: int, window: int = 65_536
    ) -> None:
        self._lengths = np.asarray(lengths, dtype=np.int64)
        self._windows = max(1, -(-int(self._lengths.sum()) // window))
        random = _generator(seed, epoch, len(lengths))
        drawn = torch.randint(_PHASES, (len(lengths),), generator=random)
        self._phases: Integers = drawn.numpy()  # in units of 1 / _PHASES
        self._number = -1
        self._shards: Integers = np.empty(0, np.int64)
        self._places: Integers = np.empty(0, np.int64)

    def span(self, first: int, last: int) -> tuple[Integers, Integers]:
        """Return shard and place in the shard's own order of each position from first to last.

        Args:
            first: Position in the epoch.
            last: Position after the last.

        Returns:
            Two int64 [last - first].
        """
        number = self._window_of(first)
        found = []
        position = first
        while position < last:
            self._evaluate(number)
            start = self._start(number)
            part = slice(position - start, last - start)
            found.append((self._shards[part], self._places[part]))
            position += len(found[-1][0])
            number += 1
        shards, places = zip(*found, strict=True)
        return np.concatenate(shards), np.concatenate(places)

    def _taken(self, number: int) -> Integers:
        """Samples of each shard before a window."""
        shares = number * _PHASES * self._lengths + self._windows * self._phases
        taken: Integers = shares // (self._windows * _PHASES)
        return taken

    def _start(self, number: int) -> int:
        return int(self._taken(number).sum())

    def _window_of(self, position: int) -> int:
        return bisect.bisect_right(range(self._windows + 1), position, key=self._start) - 1

    def _evaluate(self, number: int) -> None:
        if number == self._number:
            return
        taken, until = self._taken(number), self._taken(number + 1)
        counts = until - taken
        shards = np.repeat(np.arange(len(counts)), counts)
        within = np.arange(len(shards)) - np.repeat(np.cumsum(counts) - counts, counts)
        places = within + taken[shards]
        # an exact numerator, a correctly rounded division, a stable sort: the same everywhere
        keys = (places + 1 - (self._phases / _PHASES)[shards]) / self._lengths[shards]
        sequence = np.argsort(keys, kind="stable")
        self._shards, self._places = shards[sequence], places[sequence]
        self._number = number


def mixed_seed(*key: int) -> int:
    """Return a seed of 63 bits that depends on all of some numbers, none of them negative."""
    return int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0]) >> 1


def _generator(*key: int) -> torch.Generator:
    return torch.Generator().manual_seed(mixed_seed(*key))
