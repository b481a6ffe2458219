"""Patches of raw images that change no tensor: cut off where the image was to be made smaller."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from training_core.checks.data.arrays import flat
from training_core.checks.data.frames import copy_of, sample_of
from training_core.checks.data.nested import dense, like
from training_core.checks.data.problem import Problem
from training_core.checks.subject import Subject
from training_core.task import Arrays

_SAMPLE, _ROWS = 64, 8  # rows drawn, and those of one shape whose patches are replaced
_GRID, _SIDE = 6, 4  # patches along an axis, of as many pixels: a stride of 4 leaps over none
_FEW, _SMALLEST = 3, 2  # patches along an axis of small images, and their pixels
_LEAST = 6  # patches that differ between rows
_NUMBERS, _LARGE = 16_000_000, 1_000_000  # of all copies, as far as rows allow; of an image
_MOST, _MANY = 0.5, 0.25  # of the patches

Image = npt.NDArray[Any]
Box = tuple[slice, ...]


def of_patches(subject: Subject, column: str) -> Problem | None:
    """Find an image of which a large part never arrives.

    Each patch of a grid over the two longest axes is replaced by that of another row, and by one
    of the lowest or highest value, which a threshold sees as well. Scaled, subsampled or cropped a
    little, every patch still changes a tensor; `np.resize` keeps the first pixels and drops the
    rest. A cut along one axis, while a tensor keeps the other's length, may be meant, and so may a
    crop that leaves nothing of any border.
    """
    rows, images = _images(subject, column)
    if len(images) < 2:
        return None
    axes, boxes = _grid(images[0].shape)
    boxes = [box for box in boxes if any((i[box] != images[0][box]).any() for i in images)]
    if len(boxes) < _LEAST or images[0].size > _LARGE:
        return None
    fitting = _NUMBERS // (images[0].size * (len(boxes) + 1))
    count = min(len(images), max(2, fitting))
    rows, kept = rows.iloc[:count], images[:count]
    arrives, arrays = _arrive(subject, rows, column, kept, [_others(kept, b) for b in boxes], boxes)
    lost = [box for box, there in zip(boxes, arrives, strict=True) if not there]
    if len(lost) > _MANY * len(boxes):
        arrives, _ = _arrive(subject, rows, column, kept, [_far(kept, b) for b in lost], lost)
        lost = [box for box, there in zip(lost, arrives, strict=True) if not there]
    share = len(lost) / len(boxes)
    if share <= _MANY:
        return None
    high, wide = (images[0].shape[axis] for axis in axes)
    return Problem(
        fails=share > _MOST and not _is_meant(images[0].shape, axes, boxes, lost, arrays),
        message=f"{share:.0%} of the patches of {column!r} ({len(boxes)} of each image of "
        f"{high} by {wide}) change no tensor, whatever is in them",
        advice="see whether the image was cut where it was to be made smaller: np.resize and a "
        "slice keep some pixels and drop the rest",
        measured=share, limit=_MOST,
    )  # fmt: skip


def _images(subject: Subject, column: str) -> tuple[pd.DataFrame, list[Image]]:
    """Return rows, and their images: all of the shape that is most frequent, of 2 or 3 axes."""
    rows = sample_of(subject.train, _SAMPLE, seed=9).reset_index(drop=True)
    known = {
        place: image for place, c in enumerate(rows[column]) if (image := dense(c)) is not None
    }
    shapes = pd.Series([image.shape for image in known.values() if image.ndim in (2, 3)])
    if shapes.empty:
        return rows.iloc[:0], []
    shape = shapes.mode().iloc[0]
    places = [place for place, image in known.items() if image.shape == shape][:_ROWS]
    return rows.iloc[places].reset_index(drop=True), [known[place] for place in places]


def _grid(shape: tuple[int, ...]) -> tuple[tuple[int, int], list[Box]]:
    """Return the two longest axes, and patches over them; none, where an axis is too short."""
    one, other = sorted(np.argsort([-size for size in shape], kind="stable")[:2].tolist())
    edges = []
    for size in (shape[one], shape[other]):
        count = min(_GRID, max(_FEW, size // _SIDE))
        if size < _SMALLEST * count:
            return (one, other), []
        edges.append(np.linspace(0, size, count + 1).astype(int).tolist())
    boxes: list[Box] = []
    for top, bottom in zip(edges[0], edges[0][1:], strict=False):
        for left, right in zip(edges[1], edges[1][1:], strict=False):
            box = [slice(None)] * len(shape)
            box[one], box[other] = slice(top, bottom), slice(left, right)
            boxes.append(tuple(box))
    return (one, other), boxes


def _others(images: list[Image], box: Box) -> list[Image]:
    """Return for each image the patch of that other one which differs most."""
    patches = [np.nan_to_num(image[box].astype(np.float64)) for image in images]
    farthest = [int(np.argmax([np.abs(p - own).sum() for p in patches])) for own in patches]
    return [images[place][box] for place in farthest]


def _far(images: list[Image], box: Box) -> list[Image]:
    """Return for each image a patch of the lowest or the highest value, whichever is farther."""
    low, high = (pick([pick(image) for image in images]) for pick in (np.nanmin, np.nanmax))
    patches = [image[box] for image in images]
    return [
        np.full_like(p, low if float(np.nanmean(p)) - low > high - float(np.nanmean(p)) else high)
        for p in patches
    ]


def _arrive(
    subject: Subject,
    rows: pd.DataFrame,
    column: str,
    images: list[Image],
    patches: list[list[Image]],
    boxes: list[Box],
) -> tuple[list[bool], Arrays]:
    """Say of each patch whether any tensor of any row changes with it; return the arrays too."""
    made = list(images)
    for box, put in zip(boxes, patches, strict=True):
        for image, patch in zip(images, put, strict=True):
            changed = image.copy()
            changed[box] = patch
            made.append(changed)
    frame = rows.iloc[list(range(len(rows))) * (len(boxes) + 1)].reset_index(drop=True)
    raw = list(rows[column]) * (len(boxes) + 1)
    values = [like(cell, image) for cell, image in zip(raw, made, strict=True)]
    frame[column] = pd.Series(values, dtype=object)
    arrays = subject.preprocessor.transform(copy_of(frame))
    found = np.zeros(len(boxes), dtype=bool)
    for array in arrays.values():
        numbers = np.nan_to_num(flat(array)).reshape(len(boxes) + 1, len(rows), -1)
        found |= (numbers[1:] != numbers[:1]).any(axis=(1, 2))
    return found.tolist(), arrays


def _is_meant(
    shape: tuple[int, ...], axes: tuple[int, int], boxes: list[Box], lost: list[Box], arrays: Arrays
) -> bool:
    """Say whether all borders are lost, or bands across an axis whose length a tensor keeps."""
    border = [
        box
        for box in boxes
        if any(box[axis].start == 0 or box[axis].stop == shape[axis] for axis in axes)
    ]
    if len(lost) < len(boxes) and all(box in lost for box in border):
        return True
    for axis, across in (axes, axes[::-1]):
        bands = {str(box[across]) for box in lost}
        whole = all(box in lost for box in boxes if str(box[across]) in bands)
        if whole and any(shape[axis] in array.shape[1:] for array in arrays.values()):
            return True
    return False
