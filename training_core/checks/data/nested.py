"""Values of raw cells, however deeply nested: copied, compared and told apart by what they hold.

Parquet gives a list of lists as an array of arrays, which share memory when they are copied, and
which neither `==` nor their bytes compare.
"""

from __future__ import annotations

import copy
import datetime
import decimal
from typing import Any

import numpy as np
import numpy.typing as npt

_PLAIN = (str, bytes, int, float, bool, type(None), np.generic, decimal.Decimal, datetime.date)


def copy_of_cell(cell: Any) -> Any:
    """Return a copy that shares no memory; much sooner than `copy.deepcopy` does it."""
    if isinstance(cell, _PLAIN):
        return cell
    if type(cell) is np.ndarray:
        if not cell.dtype.hasobject:
            return cell.copy()
        copied = np.empty_like(cell)
        for place, inner in enumerate(cell.flat):
            copied.flat[place] = copy_of_cell(inner)
        return copied
    if type(cell) in (list, tuple):
        return type(cell)([copy_of_cell(inner) for inner in cell])
    if type(cell) is dict:
        return {key: copy_of_cell(inner) for key, inner in cell.items()}
    return copy.deepcopy(cell)


def same_cell(a: Any, b: Any) -> bool:
    """Say whether two cells hold the same; NaN is the same as NaN."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if not a.dtype.hasobject:
            return bool(a.tobytes() == b.tobytes())
        return all(same_cell(x, y) for x, y in zip(a.flat, b.flat, strict=True))
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(same_cell(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same_cell(a[key], b[key]) for key in a)
    try:
        return bool(a == b) or bool(a != a and b != b)
    except TypeError:  # pandas.NA is neither
        return type(a) is type(b) and repr(a) == repr(b)


def key_of(cell: Any) -> Any:
    """Return something hashable that is the same for cells that hold the same."""
    if isinstance(cell, np.ndarray) and not cell.dtype.hasobject:
        return (cell.shape, cell.dtype.str, cell.tobytes())
    if isinstance(cell, list | tuple | np.ndarray):
        return tuple(key_of(inner) for inner in cell)
    return repr(cell)


def dense(cell: Any) -> npt.NDArray[Any] | None:
    """Return a nested list, or an array of arrays, as one array of numbers; None: it is none."""
    if not isinstance(cell, list | tuple | np.ndarray):
        return None
    try:
        array = np.asarray(_as_lists(cell))
    except ValueError:  # lists of different lengths in a list
        return None
    return array if array.size and array.dtype.kind in "iuf" else None


def like(cell: Any, array: npt.NDArray[Any]) -> Any:
    """Return an array in the form of a cell: lists in lists, or arrays in arrays."""
    if isinstance(cell, np.ndarray):
        if not cell.dtype.hasobject:
            return array.astype(cell.dtype)
        made = np.empty(len(cell), dtype=object)
        for place, (inner, part) in enumerate(zip(cell, array, strict=True)):
            made[place] = like(inner, part)
        return made
    if isinstance(cell, list | tuple):
        return type(cell)(like(inner, part) for inner, part in zip(cell, array, strict=True))
    return array.item()


def _as_lists(cell: Any) -> Any:
    """An array of arrays as a list of arrays, which numpy can stack."""
    if isinstance(cell, np.ndarray) and not cell.dtype.hasobject:
        return cell
    if isinstance(cell, list | tuple | np.ndarray):
        return [_as_lists(inner) for inner in cell]
    return cell
