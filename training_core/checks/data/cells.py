"""How the tensors answer to one cell of a list or an array at a time: a pixel, a step of time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from training_core.checks.data.arrays import flat
from training_core.checks.data.frames import copy_of, is_plain, label_columns, sample_of
from training_core.checks.data.nested import dense, like
from training_core.checks.data.responses import Response, changed_by
from training_core.checks.subject import Subject

_PLACES = 2  # cells of a row that are changed, those whose values differ most over the rows
_VALUES = 48  # different ones put into a cell
_ROWS = 64  # whose values are known
_NUMBERS = 8_000_000  # of the rows that are transformed: large images get fewer values


def responses_of_cells(subject: Subject) -> list[Response]:
    """Return the response to a few cells of each column of lists or arrays of numbers.

    Only values that were seen in the column are put in. A preprocessor that refuses a row which was
    put together so, as one of shares that have to add up to 1 may, has no responses.
    """
    labels = label_columns(subject.task)
    found = []
    for column in dict.fromkeys(subject.preprocessor.columns):
        if column in labels or column not in subject.train or is_plain(subject.train[column]):
            continue
        rows = sample_of(subject.train, _ROWS, seed=6).reset_index(drop=True)
        cells = {place: dense(cell) for place, cell in enumerate(rows[column])}
        known = {place: cell for place, cell in cells.items() if cell is not None}
        if known:
            found += _responses(subject, rows, column, known)
    return found


def _responses(
    subject: Subject, rows: pd.DataFrame, column: str, cells: dict[int, npt.NDArray[Any]]
) -> list[Response]:
    values = np.unique(np.concatenate([cell.ravel() for cell in cells.values()]))
    values = values[np.isfinite(values)]
    base = max(cells, key=lambda place: cells[place].size)
    size = cells[base].size
    most = min(_VALUES, _NUMBERS // size, len(values))
    picked = values[np.linspace(0, len(values) - 1, most).astype(int)]
    found = []
    for place in _places(cells, base):
        changed = [_with(rows[column][base], place, value) for value in picked]
        frame = rows.iloc[[base] * len(picked)].reset_index(drop=True)
        frame[column] = pd.Series(changed, dtype=object)
        try:
            arrays = subject.preprocessor.transform(copy_of(frame))
        except Exception:  # noqa: BLE001 (no such row was ever seen; the user's code may refuse it)
            return []
        blocks = {name: flat(array)[None] for name, array in arrays.items()}
        where = ", ".join(str(i) for i in np.unravel_index(place, cells[base].shape))
        found.append(Response(f"{column}[{where}]", pd.Series(picked), changed_by(blocks)))
    return found


def _places(cells: dict[int, npt.NDArray[Any]], base: int) -> list[int]:
    """Return places in the flattened base cell, those first whose values differ most."""
    alike = [cell.ravel() for cell in cells.values() if cell.shape == cells[base].shape]
    differing = np.array([len(np.unique(each)) for each in np.stack(alike, axis=1)])
    return [int(i) for i in np.argsort(-differing, kind="stable")[:_PLACES]]


def _with(cell: Any, place: int, value: Any) -> Any:
    """Return a copy of a cell with another value at a place of its flattened form."""
    array = dense(cell)
    assert array is not None
    changed = array.copy()
    changed.flat[place] = value
    return like(cell, changed)
