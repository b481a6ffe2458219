"""Axes of images and of other nested cells: does a step along one stay a step along one?"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from training_core.checks.data.arrays import flat
from training_core.checks.data.frames import copy_of, sample_of
from training_core.checks.data.nested import dense, like
from training_core.checks.data.problem import Problem
from training_core.task import Arrays, Preprocessor

_ROWS = 32  # among which a cell is chosen, and whose values are put in
_ANCHORS, _LEAST = 16, 3  # places, and the same one step further along each axis
_NUMBERS = 8_000_000  # of all copies of the cell
_PEAK = 0.5  # of the largest change: none beside it may be larger, else it is smeared
_SEEN = 8  # places at least that have one: of a cropped image few may

Places = npt.NDArray[np.int64]


def of_axes(preprocessor: Preprocessor, frame: pd.DataFrame, column: str) -> Problem | None:
    """Find a reshape where a transpose was meant: [height, width, 3] to [3, height, width].

    Single elements are changed, and where they arrive is looked at. Transposed, flipped, cropped,
    padded or shrunk, two neighbours along a raw axis stay neighbours along one axis of the tensor.
    Where they do not, though the tensor has the raw axes in another order by their sizes, and
    elements are still in the order of the raw cell's memory, they were reshaped.

    Returns None where all is well, and where nothing can be said: cells of one axis, tensors of
    other axes (flattened, cut into patches) or of other rows, pixels that are smeared.
    """
    rows = sample_of(frame, _ROWS, seed=8)
    cells = [
        (place, array) for place, c in enumerate(rows[column]) if (array := dense(c)) is not None
    ]
    if not cells or cells[0][1].ndim < 2:
        return None
    place, base = max(cells, key=lambda each: each[1].size)
    shape = base.shape
    probes = _probes(shape, min(_ANCHORS, _NUMBERS // (base.size * (1 + len(shape)))))
    if len(probes) < _LEAST * (1 + len(shape)):
        return None
    every = np.concatenate([array.ravel() for _, array in cells])
    extremes = (np.nanmin(every), np.nanmax(every))
    changed = [_changed(base, tuple(probe), extremes) for probe in probes]
    copies = rows.iloc[[place] * (1 + len(probes))].reset_index(drop=True)
    raw = rows[column].iloc[place]
    values = [like(raw, array) for array in (base, *changed)]
    copies[column] = pd.Series(values, dtype=object)
    for name, inner, where in _arrivals(preprocessor.transform(copy_of(copies)), shape):
        known = where >= 0
        if known.sum() < _SEEN:
            continue
        if not _keeps_axes(probes, where, inner) and _in_order_of_memory(probes, where, shape):
            return Problem(
                fails=True,
                message=f"column {column!r} of {list(shape)} was reshaped to the {list(inner)} of "
                f"{name!r}, not transposed: neighbours along one of its axes are none any more, "
                "and values of several axes lie along one",
                advice="name the axes and move them (transpose, permute, moveaxis); reshape only "
                "splits or joins neighbouring ones",
                measured=0.0, limit=1.0,
            )  # fmt: skip
    return None


def _probes(shape: tuple[int, ...], anchors: int) -> Places:
    """Return places [probes, axes]: each anchor, followed by its neighbour along each axis."""
    random = np.random.default_rng(0)
    room = np.array([max(1, size - 1) for size in shape])
    found = []
    for _ in range(anchors):
        anchor = random.integers(0, room)
        found.append(anchor)
        for axis, size in enumerate(shape):
            found.append(anchor + (np.arange(len(shape)) == axis) * (size > 1))
    return np.array(found, dtype=np.int64).reshape(len(found), len(shape))


def _changed(
    base: npt.NDArray[Any], place: tuple[int, ...], extremes: tuple[Any, Any]
) -> npt.NDArray[Any]:
    """Return a copy whose element is the lowest or the highest seen, whichever is farther."""
    low, high = extremes
    changed = base.copy()
    changed[place] = (
        high if float(high) - float(base[place]) > float(base[place]) - float(low) else low
    )
    return changed


def _arrivals(arrays: Arrays, shape: tuple[int, ...]) -> list[tuple[str, tuple[int, ...], Places]]:
    """Return arrays that have the raw axes in another order, and where each probe arrives in them.

    By name, shape without axes of one element, flat place of each probe (-1: at none).
    """
    plain = [size for size in shape if size > 1]
    found = []
    for name, array in arrays.items():
        inner = tuple(size for size in array.shape[1:] if size > 1)
        if len(inner) != len(plain) or len(inner) < 2:
            continue
        if not _moved(plain, inner):
            continue
        numbers = flat(array)
        changes = np.abs(np.nan_to_num(numbers[1:]) - np.nan_to_num(numbers[:1]))
        peak = changes.argmax(axis=1)
        largest = changes.max(axis=1)
        beside = np.partition(changes, -2, axis=1)[:, -2]
        clear = (largest > 0) & (beside < _PEAK * largest)
        found.append((name, inner, np.where(clear, peak, -1)))
    return found


def _moved(raw: list[int], inner: tuple[int, ...]) -> bool:
    """Say whether the tensor's axes are the raw ones in any order, or one of three has moved.

    One that keeps its size, such as the three of colours, while the others are cropped or padded.
    """
    if sorted(raw) == sorted(inner):
        return True
    places = itertools.permutations(range(len(raw)), 2)
    # [T, C] to [T / 2, 2 C] is a stack of steps
    return len(raw) > 2 and any(raw[one] == inner[other] for one, other in places)


def _keeps_axes(probes: Places, where: Places, inner: tuple[int, ...]) -> bool:
    """Say whether each raw axis is one axis of the tensor, another one for each."""
    axes = probes.shape[1]
    positions = np.stack(np.unravel_index(np.maximum(where, 0), inner), axis=1)
    taken: list[int] = []
    for axis in range(axes):
        anchors = np.arange(0, len(probes), axes + 1)
        steps = anchors + 1 + axis
        both = (where[anchors] >= 0) & (where[steps] >= 0)
        moved = (positions[steps] != positions[anchors])[both]
        along = np.flatnonzero(moved.any(axis=0))
        if len(along) > 1 or (len(along) and int(along[0]) in taken):
            return False
        taken += [int(place) for place in along]
    return True


def _in_order_of_memory(probes: Places, where: Places, shape: tuple[int, ...]) -> bool:
    """Say whether places in the tensor grow with those in the raw cell, its axes in any order."""
    known = where >= 0
    for order in itertools.permutations(range(len(shape))):
        sizes = [shape[axis] for axis in order]
        weights = [math.prod(sizes[place + 1 :]) for place in range(len(sizes))]
        raw = (probes[:, order] * np.array(weights)).sum(axis=1)[known]
        arrived = where[known][np.argsort(raw, kind="stable")]
        if (np.diff(arrived) >= 0).all():
            return True
    return False
