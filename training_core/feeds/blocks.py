"""Examples on disk, larger than memory, in an order that mixes windows of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from training_core.errors import ConfigurationError
from training_core.examples import Examples
from training_core.feeds.chunks import RowFeed
from training_core.feeds.order import BlockOrder, Integers, Window
from training_core.feeds.rows import Columns, columns, empty, gather, row_bytes
from training_core.feeds.sampling import Sampling
from training_core.feeds.steps import Cut, Stretch

BLOCK_BYTES = 2**17
"""Size of a block: long enough to be read in one go, short enough to mix well."""


@dataclass(frozen=True)
class Segment:
    """Rows that lie one after another on disk.

    Attributes:
        like: One example: names, types and the shapes of a row.
        columns: Memory-mapped, one for each tensor of `like`; types may differ from its types.
        starts: int64 [blocks], first row of each block; the last block ends with the segment.
        count: Rows.
    """

    like: Examples
    columns: Columns
    starts: Integers
    count: int

    @classmethod
    def of(
        cls,
        arrays: dict[str, NDArray[Any]],
        target: NDArray[Any],
        units: NDArray[Any] | None,
        *,
        classes: bool = False,
        teacher: NDArray[Any] | None = None,
    ) -> Segment:
        """Return the segment of memory-mapped arrays, in blocks of BLOCK_BYTES.

        Args:
            arrays: By name, first dimension N.
            target: First dimension N, read as float32.
            units: [N], read as float32; None: one each.
            classes: The target is of classes or tokens, read as int64.
            teacher: First dimension N, read as float32; None: nobody was asked.
        """
        like = Examples(
            {name: torch.from_numpy(np.zeros_like(a, shape=(1, *a.shape[1:])))
             for name, a in arrays.items()},
            torch.zeros(1, *target.shape[1:], dtype=torch.int64 if classes else torch.float32),
            None if units is None else torch.zeros(1),
            None if teacher is None else torch.zeros(1, *teacher.shape[1:]),
        )  # fmt: skip
        rows = max(1, BLOCK_BYTES // row_bytes(like))
        starts = np.arange(0, len(target), rows, dtype=np.int64)
        parts = [*arrays.values(), target, *(e for e in (teacher, units) if e is not None)]
        return cls(like, parts, starts, len(target))

    @property
    def lengths(self) -> Integers:
        """Rows of each block."""
        return np.diff(self.starts, append=self.count)


class BlockFeed(RowFeed):
    """Feeds examples from disk, of which only a window is in memory.

    The order mixes the blocks of all segments, then the rows of each window of `window_blocks`
    neighbours in that order: 128 KiB each, so 4 MiB together, which stay in the caches. Rows that
    lie beside each other on disk thus come soon after one another; if long runs of them are alike,
    mix them when they are written, or widen the window.

    Args:
        segments: From `npy.open_blocks` or `arrow.open_arrow`; all with the same columns.
        window_blocks: Blocks whose rows are mixed. Part of the order: a run that goes on with
            another number repeats and loses samples.
        sampling: How often each row is drawn, counted through all segments; None: once an epoch.

    Raises:
        ConfigurationError: There are no rows, or segments have different columns.
    """

    def __init__(
        self,
        segments: Sequence[Segment],
        *,
        window_blocks: int = 32,
        sampling: Sampling | None = None,
    ) -> None:
        segments = [segment for segment in segments if segment.count]
        if not segments:
            raise ConfigurationError("there are no examples to feed")
        shapes = {_described(segment.like) for segment in segments}
        if len(shapes) > 1:
            raise ConfigurationError(
                f"the columns differ between files: {' | '.join(sorted(shapes))}",
                hint="write all files from the same features, in the same order",
            )
        count = sum(segment.count for segment in segments)
        super().__init__(segments[0].like, count, sampling=sampling)
        self._segments = segments
        self._window_blocks = window_blocks
        self._lengths = np.concatenate([segment.lengths for segment in segments])

    @property
    def like(self) -> Examples:
        """One example: names, types and the shapes of a row."""
        return self._like

    def first(self) -> Examples:
        """Return the first row, read from disk."""
        row = empty(self._like, 1)
        for column, into in zip(self._segments[0].columns, columns(row), strict=True):
            np.copyto(into, column[:1], casting="same_kind")
        return row

    def reader(self, *, seed: int, epoch: int) -> BlockReader:
        """Return the reader of an epoch."""
        counts = None if self.sampling is None else self.sampling.counts(seed=seed, epoch=epoch)
        lengths = self._lengths
        if counts is not None:
            lengths = np.add.reduceat(counts, np.cumsum(self._lengths) - self._lengths)
        order = BlockOrder(lengths, window_blocks=self._window_blocks, seed=seed, epoch=epoch)
        return BlockReader(self._segments, order, counts=counts)

    def stored(self, first: int, last: int) -> Examples:
        """Return rows as they lie on disk, one segment after another."""
        found = empty(self._like, last - first)
        begin = 0
        for segment in self._segments:
            start, stop = max(first - begin, 0), min(last - begin, segment.count)
            if start < stop:
                place = slice(begin + start - first, begin + stop - first)
                for column, into in zip(segment.columns, columns(found), strict=True):
                    np.copyto(into[place], column[start:stop], casting="same_kind")
            begin += segment.count
        return found

    _reader = reader


class BlockReader:
    """Reads an epoch window by window.

    A window's blocks are copied one after another into memory that is used again, and rows gathered
    from there: reading is sequential, and the gather stays in the caches.

    Args:
        segments: All with the same columns.
        order: Of their blocks, counted through all segments; a block is as long as rows of it are
            drawn.
        counts: How often each row is drawn; None: once each.
    """

    def __init__(
        self, segments: Sequence[Segment], order: BlockOrder, *, counts: Integers | None = None
    ) -> None:
        self._segments, self._order, self._counts = segments, order, counts
        self._like = segments[0].like
        self._first_blocks = np.cumsum([0] + [len(segment.starts) for segment in segments])
        self._memory: Columns = columns(empty(self._like, 0))
        self._window: Window | None = None
        self._rows: Integers = np.empty(0, np.int64)

    def read(self, stretch: Stretch, cut: Cut, into: Columns) -> NDArray[np.float32] | None:
        """Fill memory with this rank's rows of a stretch (see `chunks.Reader`)."""
        wanted = cut.mine(np.arange(stretch.first, stretch.last))
        everyone = None
        if self._like.units is not None:
            everyone = np.empty(stretch.last - stretch.first, np.float32)
        if len(cut.sizes) == 1:
            self.fetch(wanted, into, first=stretch.first, units=everyone)
        else:  # the parts of a step are not in the order of reading
            ascending = np.argsort(wanted, kind="stable")
            scratch = columns(empty(self._like, len(wanted)))
            self.fetch(wanted[ascending], scratch, first=stretch.first, units=everyone)
            gather(scratch, np.argsort(ascending, kind="stable"), into)
        return everyone

    def fetch(
        self,
        wanted: Integers,
        into: Columns,
        *,
        first: int = 0,
        units: NDArray[np.float32] | None = None,
    ) -> None:
        """Fill memory with the rows at some positions.

        Args:
            wanted: int64, ascending positions in the epoch.
            into: As many rows.
            first: Position of the first of `units`.
            units: Filled with the units of the samples from `first` on.
        """
        position = first if units is not None else int(wanted[0])
        last = first + len(units) if units is not None else int(wanted[-1]) + 1
        done = 0
        while position < last:
            window = self._load(position)
            until = int(np.searchsorted(wanted, window.last))
            rows = self._rows[wanted[done:until] - window.first]
            gather(self._memory, rows, [column[done:until] for column in into])
            if units is not None:
                end = min(last, window.last)
                rows = self._rows[position - window.first : end - window.first]
                units[position - first : end - first] = self._memory[-1][rows]
            done, position = until, window.last
            if units is None and done < len(wanted):
                position = int(wanted[done])  # windows without a wanted row are not read

    def _load(self, position: int) -> Window:
        """Have the window of a position in memory."""
        window = self._window
        if window is not None and window.first <= position < window.last:
            return window
        window = self._window = self._order.window_at(position)
        self._rows = self._order.rows(window)
        places = [self._place(block) for block in window.blocks.tolist()]
        if self._counts is not None:
            places = self._repeat(window, places)
        needed = sum(stop - start for _, start, stop in places)
        if len(self._memory[0]) < needed:
            self._memory = columns(empty(self._like, needed))
        filled = 0
        for segment, start, stop in places:
            for column, memory in zip(segment.columns, self._memory, strict=True):
                target = memory[filled : filled + stop - start]
                np.copyto(target, column[start:stop], casting="same_kind")
            filled += stop - start
        return window

    def _repeat(
        self, window: Window, places: list[tuple[Segment, int, int]]
    ) -> list[tuple[Segment, int, int]]:
        """Let a window's rows be there as often as they are drawn; return the blocks to read."""
        assert self._counts is not None
        read, counts = [], []
        for block, place in zip(window.blocks.tolist(), places, strict=True):
            _, start, stop = place
            number = int(np.searchsorted(self._first_blocks, block, side="right")) - 1
            before = sum(each.count for each in self._segments[:number])
            drawn = self._counts[before + start : before + stop]
            if drawn.any():
                read.append(place)
                counts.append(drawn)
        times = np.concatenate(counts)
        self._rows = np.repeat(np.arange(len(times)), times)[self._rows]
        return read

    def _place(self, block: int) -> tuple[Segment, int, int]:
        """Return segment, first row and the row after the last of a block."""
        number = int(np.searchsorted(self._first_blocks, block, side="right")) - 1
        segment = self._segments[number]
        block -= int(self._first_blocks[number])
        last = block + 1 == len(segment.starts)
        stop = segment.count if last else int(segment.starts[block + 1])
        return segment, int(segment.starts[block]), stop


def _described(like: Examples) -> str:
    tensors = {**like.arrays, "target": like.target}
    words = [f"{name} {t.dtype} {list(t.shape[1:])}" for name, t in tensors.items()]
    words += [n for n, t in (("teacher", like.teacher), ("units", like.units)) if t is not None]
    return ", ".join(words)
