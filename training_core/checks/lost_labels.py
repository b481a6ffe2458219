"""Values of the label that the task has no target for: their rows are left out without a word."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from training_core.examples import without_label
from training_core.task import Task


class LostLabel(NamedTuple):
    """A value that is there and is no target.

    Attributes:
        column: Of the label.
        value: As it stands in the rows.
        share: Of all rows.
    """

    column: str
    value: Any
    share: float


def rows_without_target(task: Task, frame: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Say of each row whether the task has no target for it, bool [N]; none if target raises."""
    try:
        return without_label(task.target(frame.copy()), kind=task.kind)
    except Exception:  # noqa: BLE001 (whatever needs the target says so)
        return np.zeros(len(frame), dtype=bool)


def lost_labels(task: Task, frame: pd.DataFrame, *, rows: int) -> list[LostLabel]:
    """Return the values of rows without a target that are no nulls, frequent ones first.

    Args:
        frame: Rows for which the task has no target.
        rows: How many there are with those that have one.
    """
    names = getattr(task, "labels", ()) if task.kind == "multilabel" else [task.label]
    target = np.asarray(task.target(frame.copy())) if len(frame) else np.zeros((0, len(names)))
    found = []
    for place, name in enumerate(names):
        if name not in frame:
            continue
        values = list(frame[name])
        if task.kind == "multilabel" and target.ndim == 2:
            lost = np.isnan(target[:, place])
            values = [value for value, gone in zip(values, lost, strict=True) if gone]
        known = [value for value in values if pd.api.types.is_scalar(value) and not pd.isna(value)]
        for value, count in Counter(known).items():
            found.append(LostLabel(name, value, count / rows))
    return sorted(found, key=lambda each: -each.share)
