"""Lists of which most items are left behind on the way to the tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from training_core.checks.data.arrays import flat, thinned
from training_core.checks.data.frames import label_columns
from training_core.checks.data.problem import Problem
from training_core.checks.subject import Subject

_ROOM = 8  # columns of an array, below which there is nothing to leave behind
_TIMES = 2  # as many items as arrive; a cut that is meant leaves no room unused


def of_lists(subject: Subject) -> Iterator[Problem]:
    """Arrays with room for items that are there, and never come.

    A cut at the array's width is meant; one far below it, so that most columns are the same in
    every row although half of the rows have other items at those places, is not.
    """
    labels = label_columns(subject.task)
    items = {
        column: _differing(subject.train[column])
        for column in subject.preprocessor.columns
        if column in subject.train and column not in labels and _is_list(subject.train[column])
    }
    if not items:
        return
    column = min(items, key=lambda each: items[each])
    for name, array in thinned(subject.examples).items():
        if array.ndim != 2 or array.shape[1] < _ROOM:
            continue
        columns = flat(array)
        room, used = columns.shape[1], int((columns != columns[0]).any(axis=0).sum())
        if 0 < used * _TIMES <= min(room, items[column]):
            yield Problem(
                fails=True,
                message=f"only {used} of the {room} columns of {name!r} ever change, where half of "
                f"the rows hold {items[column]} items in {column!r}",
                advice="look at where transform cuts, shifts and pads its lists",
                measured=float(used), limit=min(room, items[column]) / _TIMES,
            )  # fmt: skip


def _differing(cells: pd.Series[Any]) -> int:
    """Return how many places of the lists half of the rows have, and differ at."""
    known = [cell for cell in cells if isinstance(cell, list | tuple)]
    length = int(np.median([len(cell) for cell in known]))
    return sum(len({repr(cell[i]) for cell in known if len(cell) > i}) > 1 for i in range(length))


def _is_list(cells: pd.Series[Any]) -> bool:
    """Say whether most cells are lists of plain values."""
    known = [cell for cell in cells[:50] if isinstance(cell, list | tuple) and len(cell)]
    nested = any(isinstance(cell[0], list | tuple | dict | np.ndarray) for cell in known)
    return len(known) > 0.5 * len(cells[:50]) and not nested
