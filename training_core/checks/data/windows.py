"""Held-back windows of a series that overlap with windows of train."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from training_core.examples import Examples

_PIECE = 8  # positions in a row that have to be equal to the bit
_DISTINCT = 6  # values of a piece: a level line is like any other
_ANCHORS = 8  # pieces of a held-back row that are looked for
_HALF = 0.5  # of a window's pieces that one window of train has, all shifted alike
_HELD_BACK = 500
_CELLS = 2_000_000  # of train that are looked at
_VALUES = 256  # different pieces at least
_LEVELS = 64  # different numbers: fewer are ones and zeros, or grey levels
_EVERYBODY = 0.05  # share of train rows that one row overlaps with where all are one pattern

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Overlaps:
    """Held-back rows that share half of a window with a train row.

    Attributes:
        array: Its name.
        share: Of the held-back rows looked at.
        count: The number of them.
        rows: A held-back row and the train row that it overlaps with.
        lag: By how many positions they are shifted.
    """

    array: str
    share: float
    count: int
    rows: tuple[int, int]
    lag: int


def overlapping(train: Examples, held_back: Examples) -> Overlaps | None:
    """Look for pieces of each held-back series in all train rows, at any lag.

    Numbers of series [N, T], [N, T, channels] or [N, channels, T] only: pieces of eight positions
    that are equal to the bit are no chance there, as they are in texts and pictures. Nor is a table
    a series, whose rows may have many columns in common: what is not shifted does not count.
    """
    best: Overlaps | None = None
    for name, array in train.arrays.items():
        if not array.is_floating_point() or array.ndim not in (2, 3):
            continue
        if len(torch.unique(array[:_HELD_BACK])) < _LEVELS:
            continue
        for axis in range(1, array.ndim):
            one, other = (
                (a if axis == 1 else a.transpose(1, 2)) for a in (array, held_back.arrays[name])
            )
            found = _overlapping(name, one, other)
            if found is not None and (best is None or found.count > best.count):
                best = found
    return best


def _overlapping(name: str, train: Tensor, held_back: Tensor) -> Overlaps | None:
    if min(train.shape[1], held_back.shape[1]) < 2 * _PIECE:
        return None
    train = train[: max(256, _CELLS // max(1, train[0].numel()))]
    held_back = held_back[:_HELD_BACK]
    known, informative = _pieces(train)
    if len(np.unique(known[:, ::_PIECE])) < _VALUES:
        return None
    places = np.flatnonzero(informative.ravel())
    order = places[np.argsort(known.ravel()[places], kind="stable")]
    ordered, length = known.ravel()[order], known.shape[1]
    asked, usable = _pieces(held_back)
    votes: list[tuple[int, int, int]] = []  # held-back row, train row, lag
    overlaps_with = []
    for row in range(len(asked)):
        own = np.flatnonzero(usable[row])
        if len(own) < _ANCHORS:
            continue
        anchors = own[np.linspace(0, len(own) - 1, _ANCHORS).astype(int)]
        first = np.searchsorted(ordered, asked[row, anchors], side="left")
        last = np.searchsorted(ordered, asked[row, anchors], side="right")
        if (last - first).max() > max(8, _EVERYBODY * len(train)):
            overlaps_with.append(len(train))
            continue
        hits = [
            np.stack([order[a:b] // length, order[a:b] % length - anchor], axis=1)
            for a, b, anchor in zip(first, last, anchors, strict=True)
        ]
        pairs, times = np.unique(np.concatenate(hits), axis=0, return_counts=True)
        enough = (times >= _HALF * _ANCHORS) & (pairs[:, 1] != 0)
        overlaps_with.append(len(np.unique(pairs[enough, 0])))
        if enough.any():
            best = pairs[int(np.where(enough, times, 0).argmax())]
            votes.append((row, int(best[0]), int(best[1])))
    everybody = max(8.0, _EVERYBODY * len(train))
    if not votes or np.median(overlaps_with) > everybody:
        return None
    row, other, lag = votes[0]
    return Overlaps(name, len(votes) / len(asked), len(votes), (row, other), lag)


def _pieces(series: Tensor) -> tuple[Hashes, npt.NDArray[np.bool_]]:
    """Return a hash of each piece, uint64 [N, T - 7], and which of them hold enough values.

    Args:
        series: [N, T] or [N, T, channels].
    """
    values = series.reshape(*series.shape[:2], -1).to(torch.float32) + 0.0  # minus zero is zero
    bits = np.ascontiguousarray(values.numpy()).view(np.uint32).astype(np.uint64)
    positions = np.zeros(bits.shape[:2], dtype=np.uint64)
    with np.errstate(over="ignore"):
        for channel in range(bits.shape[2]):
            positions = _mixed(positions * _FACTOR + bits[:, :, channel])
        count = bits.shape[1] - _PIECE + 1
        hashes = np.zeros((len(bits), count), dtype=np.uint64)
        for step in range(_PIECE):
            hashes = _mixed(hashes * _FACTOR + positions[:, step : step + count])
    cut = np.lib.stride_tricks.sliding_window_view(positions, _PIECE, axis=1)
    distinct = 1 + (np.diff(np.sort(cut, axis=2), axis=2) > 0).sum(axis=2)
    return hashes, distinct >= _DISTINCT


_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def _mixed(values: Hashes) -> Hashes:
    return np.asarray((values ^ (values >> np.uint64(29))) * _FACTOR, dtype=np.uint64)
