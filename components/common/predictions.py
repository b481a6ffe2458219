"""Predictions as columns: one, or one for each number that is predicted of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from components.common.metrics import Floats

SEPARATOR = "."


def as_columns(predictions: Mapping[str, Floats]) -> pd.DataFrame:
    """Return predictions by name as a frame: [N] is the column `name`, [N, K] `name.0`, ….

    Of tokens, [N, T, V], a column holds the V numbers of one of the T positions as a list.
    """
    columns: dict[str, Any] = {}
    for name, each in predictions.items():
        if each.ndim == 1:
            columns[name] = np.asarray(each, dtype=np.float64)
            continue
        for place in range(each.shape[1]):
            values = each[:, place]
            told = values if values.ndim == 1 else list(np.ascontiguousarray(values))
            columns[f"{name}{SEPARATOR}{place}"] = told
    return pd.DataFrame(columns)


def some_from_columns(frame: pd.DataFrame, names: Sequence[str]) -> dict[str, Floats]:
    """Return predictions of these names, out of a frame that has other columns as well."""
    kept = [c for c in frame.columns if c in names or str(c).rpartition(SEPARATOR)[0] in names]
    return from_columns(frame[kept])


def from_columns(frame: pd.DataFrame) -> dict[str, Floats]:
    """Return what `as_columns` made columns of, by name; places count, not the columns' order."""
    found: dict[str, Any] = {}
    for column in map(str, frame.columns):
        name, separator, place = column.rpartition(SEPARATOR)
        if separator and place.isdigit():
            found.setdefault(name, {})[int(place)] = _values(frame[column])
        else:
            found[column] = _values(frame[column])
    return {
        name: np.stack([each[place] for place in sorted(each)], axis=1)
        if isinstance(each, dict)
        else each
        for name, each in found.items()
    }


def _values(column: pd.Series[Any]) -> Floats:
    if len(column) and not np.isscalar(column.iloc[0]):
        return np.stack([np.asarray(cell, dtype=np.float64) for cell in column])
    return column.to_numpy(dtype=np.float64)
