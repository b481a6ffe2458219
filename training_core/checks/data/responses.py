"""How the tensors answer to one raw column at a time, all others held still."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from training_core.checks.data.arrays import Numbers, flat
from training_core.checks.data.frames import copy_of, is_number, is_plain, label_columns, sample_of
from training_core.checks.subject import Subject

_BASES = 3  # rows in which a column is replaced: in one alone, another may hide it
_VALUES = 40  # different values of a column
_EVEN = 20  # of them evenly over the range: where few rows are, a type may end
_STEPS = 24  # further ones of numbers, side by side: a slope shows there even among many jumps
_CELLS = 3_000_000  # of the frame that is transformed: wide tables get fewer values


@dataclass(frozen=True)
class Response:
    """What happens to the tensors as one raw column takes other values.

    Attributes:
        column: The raw column.
        values: The values put in, sorted if they are numbers.
        changed: By array, the columns of the flattened array that change, and their values in the
            first row's block: [values, changed columns].
    """

    column: str
    values: pd.Series[Any]
    changed: dict[str, tuple[list[int], Numbers]]

    @property
    def is_dead(self) -> bool:
        """Whether nothing changes."""
        return not self.changed


def responses_of(subject: Subject) -> list[Response]:
    """Return the response to each plain raw column that varies; one call of `transform`.

    Columns of lists and arrays are left out, and so is the label.
    """
    rows = subject.train
    labels = label_columns(subject.task)
    wanted = [
        column
        for column in dict.fromkeys(subject.preprocessor.columns)
        if column in rows.columns
        and column not in labels
        and is_plain(rows[column])
        and rows[column].nunique(dropna=True) > 1
    ]
    if not wanted:
        return []
    most = max(4, _CELLS // (len(wanted) * len(rows.columns) * _BASES))
    puts = {column: _values(rows[column], min(most, _VALUES)) for column in wanted}
    bases = sample_of(rows, _BASES, seed=5).reset_index(drop=True)
    counts = [len(puts[column]) * len(bases) for column in wanted]
    places = np.concatenate([np.repeat(np.arange(len(bases)), len(puts[c])) for c in wanted])
    frame, start = bases.iloc[places].reset_index(drop=True), 0
    replaced = {}
    for column, count in zip(wanted, counts, strict=True):
        values = frame[column].copy()
        values.iloc[start : start + count] = pd.concat([puts[column]] * len(bases)).array
        replaced[column] = values.astype(rows[column].dtype)
        start += count
    frame = frame.assign(**replaced)
    arrays = {name: flat(a) for name, a in subject.preprocessor.transform(copy_of(frame)).items()}
    found, start = [], 0
    for column in wanted:
        count = len(puts[column])
        blocks = {
            name: values[start : start + count * len(bases)].reshape(len(bases), count, -1)
            for name, values in arrays.items()
        }
        start += count * len(bases)
        found.append(Response(column, puts[column], changed_by(blocks)))
    return found


def line_of(raw: Numbers, answer: Numbers) -> tuple[float, float] | None:
    """Return slope and intercept, if the middle of the answers lies on one line."""
    low, high = np.quantile(raw, [0.15, 0.85])
    middle = (raw >= low) & (raw <= high)
    if middle.sum() < 4 or np.ptp(raw[middle]) == 0:
        return None
    slope, intercept = np.polyfit(raw[middle], answer[middle], 1)
    off = np.abs(slope * raw[middle] + intercept - answer[middle]).max()
    if slope == 0 or off > 1e-3 * np.ptp(answer[middle]) + 1e-9:
        return None
    return float(slope), float(intercept)


def _values(column: pd.Series[Any], most: int) -> pd.Series[Any]:
    """Values of a column to put in: the most frequent, or of numbers quantiles and neighbours."""
    known = column.dropna()
    if not is_number(column):
        return pd.Series(known.value_counts().index[:most], dtype=column.dtype)
    ordered = np.sort(known.unique())
    ordered = ordered[np.isfinite(ordered.astype(np.float64))]
    places = np.linspace(0, len(ordered) - 1, min(most, len(ordered))).astype(int)
    picked = ordered[places]
    if most == _VALUES:
        whole = pd.api.types.is_integer_dtype(column.dtype) or bool((ordered % 1 == 0).all())
        step = 1.0 if whole else float(np.ptp(ordered.astype(np.float64))) / 1e4
        middle = float(np.median(ordered.astype(np.float64)))
        near = (round(middle) if whole else middle) + step * np.arange(_STEPS)
        even = np.linspace(float(ordered[0]), float(ordered[-1]), _EVEN)
        nearest = ordered[np.searchsorted(ordered, even).clip(0, len(ordered) - 1)]
        picked = np.concatenate([picked, nearest, near[near <= ordered[-1]]])
    return pd.Series(np.unique(picked)).astype(column.dtype)


def changed_by(blocks: dict[str, Numbers]) -> dict[str, tuple[list[int], Numbers]]:
    """Return by array the columns that change within a block [rows, values, columns], and how."""
    found = {}
    for name, values in blocks.items():
        first = values[:, :1]
        differs = (values != first) & ~(np.isnan(values) & np.isnan(first))
        columns = np.flatnonzero(differs.any(axis=(0, 1)))
        if len(columns):
            base = int(differs[:, :, columns].any(axis=2).sum(axis=1).argmax())
            found[name] = ([int(c) for c in columns], values[base][:, columns])
    return found
