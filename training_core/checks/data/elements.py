"""Lists and texts in raw cells: their elements, and which of these change the tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from training_core.checks.data.arrays import flat
from training_core.checks.data.frames import copy_of, sample_of
from training_core.checks.data.nested import key_of
from training_core.task import Preprocessor

_WORDS = 4  # of a text, below which it is a name and not a text
_ROWS, _PLACES = 48, 32
_CELLS = 2_000_000  # elements of all copies of a column's cells
_IN_ORDER = 0.9  # share of changes, and correlation of places
_FREQUENT = 20  # elements that a vocabulary surely has


@dataclass(frozen=True)
class Reach:
    """Which elements of a column's cells reach the tensors.

    Attributes:
        lengths: Elements of each row's cell, int64 [rows].
        arrives: By row, whether a change of each element that was tried changes any tensor, in
            their order.
        arrays: Names of the arrays that hold elements in their order, one a position.
    """

    lengths: npt.NDArray[np.int64]
    arrives: list[npt.NDArray[np.bool_]]
    arrays: list[str]


def elements_of(cell: Any) -> list[Any] | None:
    """Return the elements of a list or of an array of one dimension, or the words of a text."""
    if isinstance(cell, str):
        return cell.split()
    if isinstance(cell, list | tuple) or (isinstance(cell, np.ndarray) and cell.ndim == 1):
        return list(cell)
    return None


def like_cell(cell: Any, place: int, other: Any) -> Any:
    """Return a cell of the same type with another element at a place."""
    return _like(cell, elements_of(cell) or [], place, other)


def reach_of(preprocessor: Preprocessor, frame: pd.DataFrame, column: str) -> Reach | None:
    """Change one element at a time, for a frequent one and for any other; None: there are none.

    One call of `transform` for all: a row's tensors depend on that row alone.
    """
    rows = sample_of(frame, _ROWS, seed=3)
    cells = [elements_of(cell) for cell in rows[column]]
    lists = [cell for cell in cells if cell]
    if len(lists) < len(cells) / 2 or np.median([len(cell) for cell in lists]) < _WORDS:
        return None
    rows = rows[[bool(cell) for cell in cells]].reset_index(drop=True)
    longest = max(len(cell) for cell in lists)
    fit = max(8, _CELLS // (2 * longest * min(longest, _PLACES)))
    rows, lists = rows[:fit], lists[:fit]
    random = np.random.default_rng(0)
    replacements = _replacements(lists)
    sources, changed, owners = [], [], []
    for row, cell in enumerate(lists):
        places = np.unique(np.linspace(0, len(cell) - 1, min(len(cell), _PLACES)).astype(int))
        for place in places:
            for pool in replacements:
                other = _another(pool, cell[place], random)
                if other is None:
                    continue
                sources.append(row)
                owners.append((row, int(place)))
                changed.append(_like(rows[column].iloc[row], cell, int(place), other))
    if not sources:
        return None
    copies = copy_of(rows.iloc[sources].reset_index(drop=True))
    copies[column] = pd.Series(changed, index=copies.index, dtype=rows[column].dtype)
    after = preprocessor.transform(copies)
    before = preprocessor.transform(copy_of(rows))
    answers, arrays = np.zeros(len(sources), dtype=bool), []
    for name, array in after.items():
        if before[name].shape[1:] != array.shape[1:]:  # as long as the longest of the rows
            return None
        differs = flat(before[name])[sources] != flat(array)
        answers |= differs.any(axis=1)
        if array.ndim > 1:
            positions = differs.reshape(len(differs), array.shape[1], -1).any(axis=2)
            if _in_order(positions, np.array(owners)):
                arrays.append(name)
    arrived: dict[tuple[int, int], bool] = {}
    for owner, answer in zip(owners, answers, strict=True):
        arrived[owner] = arrived.get(owner, False) or bool(answer)
    by_row: list[list[bool]] = [[] for _ in lists]
    for (row, _), answer in sorted(arrived.items()):
        by_row[row].append(answer)
    lengths = np.array([len(cell) for cell in lists])
    return Reach(lengths, [np.array(each, dtype=bool) for each in by_row], arrays)


def _in_order(positions: npt.NDArray[np.bool_], owners: npt.NDArray[np.int64]) -> bool:
    """Say whether each element changes one position of an array, later elements later ones.

    Args:
        positions: Which of them each change changes, bool [changes, T].
        owners: Row, and place in its cell, of the element that was changed, int64 [changes, 2].
    """
    changes = positions.sum(axis=1)
    single = changes == 1
    if single.sum() <= _IN_ORDER * (changes > 0).sum():
        return False
    moved = np.stack([positions.argmax(axis=1), owners[:, 1]], axis=1)[single].astype(np.float64)
    _, row = np.unique(owners[single, 0], return_inverse=True)
    means = [np.bincount(row, weights=column) / np.bincount(row) for column in moved.T]
    where, place = (moved - np.stack(means, axis=1)[row]).T  # a cell may be cut at its beginning
    both = np.sqrt((where**2).sum() * (place**2).sum())
    return bool(both > 0 and (where * place).sum() / both > _IN_ORDER)


def _replacements(lists: list[list[Any]]) -> list[list[Any]]:
    """Frequent elements, which a vocabulary knows, and such as come."""
    every = [element for cell in lists for element in cell[:1000]]
    first = {key_of(element): element for element in every}
    counts = Counter(map(key_of, every))
    return [[first[name] for name, _ in counts.most_common(_FREQUENT)], every]


def _another(pool: Sequence[Any], element: Any, random: np.random.Generator) -> Any | None:
    own = key_of(element)
    for place in random.integers(0, len(pool), 8):
        if key_of(pool[int(place)]) != own:
            return pool[int(place)]
    return None


def _like(cell: Any, elements: list[Any], place: int, other: Any) -> Any:
    """Return a cell of the same type with one element replaced."""
    return cell_of(cell, [*elements[:place], other, *elements[place + 1 :]])


def cell_of(like: Any, elements: list[Any]) -> Any:
    """Return a cell of the type of another one, with these elements."""
    if isinstance(like, str):
        return " ".join(map(str, elements))
    if isinstance(like, np.ndarray):
        if like.dtype.kind not in "UO":
            return np.array(elements, dtype=like.dtype)
        cell = np.empty(len(elements), dtype=object)  # np.array would make lists into dimensions
        for place, element in enumerate(elements):
            cell[place] = element
        return cell
    return type(like)(elements)
