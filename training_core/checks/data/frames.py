"""Raw rows: samples of them, copies that share nothing, and whether they were written to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from training_core.checks.data.nested import copy_of_cell, same_cell
from training_core.feeds.order import order
from training_core.task import Task


def sample_of(frame: pd.DataFrame, rows: int, *, seed: int = 0) -> pd.DataFrame:
    """Return rows drawn without replacement, index as it was."""
    return frame.iloc[order(seed=seed, epoch=0, count=len(frame))[:rows].numpy()]


def copy_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a copy that shares no memory, not even that of arrays and lists in its cells."""
    copied = frame.copy()
    for column in [
        name for name, kind in frame.dtypes.items() if pd.api.types.is_object_dtype(kind)
    ]:
        cells = [copy_of_cell(cell) for cell in frame[column]]
        copied[column] = pd.Series(cells, index=frame.index, dtype=object)
    return copied


def written(before: pd.DataFrame, after: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return the columns that were changed or taken away, and those that were added."""
    added = [str(column) for column in after.columns if column not in before.columns]
    changed = [
        str(column)
        for column in before.columns
        if column not in after.columns or not _same(before[column], after[column])
    ]
    return changed, added


def label_columns(task: Task) -> list[str]:
    """Return the raw columns of the label: several, where a task has several labels."""
    return list(dict.fromkeys([task.label, *getattr(task, "labels", ())]))


def is_plain(values: pd.Series[Any]) -> bool:
    """Say whether each cell is one value, and no list or array."""
    return not any(isinstance(cell, list | tuple | dict | np.ndarray) for cell in values[:50])


def is_number(values: pd.Series[Any]) -> bool:
    """Say whether a column holds numbers (and more than yes and no)."""
    kind = values.dtype
    return bool(pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind))


def _same(before: pd.Series[Any], after: pd.Series[Any]) -> bool:
    if before.dtype != object or after.dtype != object:
        return before.equals(after)
    if len(before) != len(after) or not before.index.equals(after.index):
        return False
    return all(same_cell(a, b) for a, b in zip(before, after, strict=True))
