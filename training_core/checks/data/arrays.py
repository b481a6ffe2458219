"""Arrays as tables: flattened, with a name for each column, and compared row by row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from training_core.examples import Examples
from training_core.task import Arrays, Preprocessor

Numbers = npt.NDArray[np.float64]
_CHANNELS = 4  # at most: an array [N, 3, height, width] has three scales, not three thousand

# Far above the rounding of a matrix product over other rows, far below any statistic of a batch.
_OF_COLUMN, _OF_ARRAY = 1e-4, 1e-5
_CELLS = 16_000_000


def flat(array: Tensor | npt.NDArray[Any]) -> Numbers:
    """Return an array as float64 [N, columns]; one column for an array [N]."""
    values = array.double().numpy() if isinstance(array, Tensor) else array.astype(np.float64)
    return values.reshape(len(values), math.prod(values.shape[1:]))


def thinned(examples: Examples) -> dict[str, Tensor]:
    """Return the arrays that have columns, of no more rows than make some 16 million numbers."""
    arrays = {name: array for name, array in examples.arrays.items() if array.numel()}
    width = sum(array[0].numel() for array in arrays.values())
    return {name: array[: max(256, _CELLS // width)] for name, array in arrays.items()}


def is_index(array: Tensor) -> bool:
    """Say whether an array holds whole numbers, and more than yes and no."""
    return not array.is_floating_point() and array.dtype is not torch.bool


def column_name(preprocessor: Preprocessor, name: str, shape: tuple[int, ...], column: int) -> str:
    """Name one column of a flattened array [N, …].

    With the preprocessor's own word for it, where it has a list of as many names under
    `<array>`, `<array>_columns` or the like (`TabularPreprocessor` has).
    """
    if len(shape) < 2:
        return f"{name!r}"
    place = ", ".join(str(i) for i in np.unravel_index(column, shape[1:]))
    words = column_names(preprocessor, name, shape)
    return f"{words[column]!r} ({name}[:, {place}])" if words else f"{name}[:, {place}]"


def column_names(preprocessor: Preprocessor, name: str, shape: tuple[int, ...]) -> list[str]:
    """Return the preprocessor's names of an array's columns; none, if it has no such list."""
    if len(shape) != 2:
        return []
    single = name.removesuffix("s")
    for attribute in (f"{single}_columns", f"{name}_columns", f"{name}_names", name, "columns"):
        words = getattr(preprocessor, attribute, None)
        if (
            isinstance(words, list | tuple)
            and len(words) == shape[1]
            and all(isinstance(word, str) for word in words)
        ):
            return list(words)
    return []


def first_difference(one: Arrays, other: Arrays) -> tuple[str, int, int] | None:
    """Return array, row and column (of the flattened array) of the first difference; None: equal.

    Numbers are equal within 1e-4 of the column's largest and 1e-5 of the array's. Where one array
    is longer than the other beyond the first dimension, as rows padded to the longest of them are,
    it may only add columns of one value.

    Raises:
        ValueError: The arrays are not comparable; the message says why.
    """
    if one.keys() != other.keys():
        raise ValueError(f"the arrays are {', '.join(one)} and then {', '.join(other)}")
    for name in one:
        a, b = np.asarray(one[name]), np.asarray(other[name])
        if a.dtype != b.dtype:
            raise ValueError(f"{name!r} is {a.dtype} and then {b.dtype}")
        if a.shape != b.shape:
            a, b = _common(name, a, b)
        a, b = a.reshape(len(a), -1), b.reshape(len(b), -1)
        wrong = ~_equal(a, b)
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            return name, int(row), int(column)
    return None


def _equal(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    if not np.issubdtype(a.dtype, np.floating):
        return np.asarray(a == b)
    one, other = a.astype(np.float64), b.astype(np.float64)
    known = np.where(np.isfinite(one), np.abs(one), 0.0)
    allowed = _OF_COLUMN * known.max(axis=0, initial=0.0) + _OF_ARRAY * known.max(initial=0.0)
    close = np.abs(np.nan_to_num(one) - np.nan_to_num(other)) <= allowed
    same_kind = (np.isnan(one) == np.isnan(other)) & (np.isinf(one) == np.isinf(other))
    return np.asarray(close & same_kind)


def _common(
    name: str, a: npt.NDArray[Any], b: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Cut two arrays to the part that both have, if the rest is padding of one value."""
    if a.ndim != b.ndim or a.ndim < 2 or len(a) != len(b) or a.shape[2:] != b.shape[2:]:
        raise ValueError(f"{name!r} has the shape {list(a.shape)} and then {list(b.shape)}")
    width = min(a.shape[1], b.shape[1])
    for rest in (a[:, width:], b[:, width:]):
        if rest.size and (rest != rest.flat[0]).any():
            raise ValueError(f"{name!r} has the shape {list(a.shape)} and then {list(b.shape)}")
    return a[:, :width], b[:, :width]


def channels_of(values: Numbers, shape: tuple[int, ...]) -> list[Numbers]:
    """Cut an array into parts of one scale, each [N, values]: columns, channels, or the whole."""
    if len(shape) <= 2:
        return [values[:, i : i + 1] for i in range(values.shape[1])]
    if shape[1] <= _CHANNELS:
        return list(np.split(values, shape[1], axis=1))
    if shape[-1] <= _CHANNELS:
        return [values[:, i :: shape[-1]] for i in range(shape[-1])]
    return [values]
