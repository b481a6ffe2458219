"""Texts and lists that differ and arrive as one and the same row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from training_core.checks.data.arrays import flat
from training_core.checks.data.elements import elements_of
from training_core.checks.data.frames import copy_of, sample_of
from training_core.checks.data.nested import key_of
from training_core.task import Preprocessor

_ROWS = 400
_WORDS = 3  # of a text, from which on it is told from others
_LEAST, _SHARE = 8, 0.04  # different texts of one row, and of all


def joined_texts(preprocessor: Preprocessor, frame: pd.DataFrame, column: str) -> str:
    """Say how many different texts arrive as one row of tensors; empty: none to speak of.

    Put into the same row otherwise, so that only they can make it differ: texts of an alphabet
    that a cleaning leaves out are all empty. Words that are rare are unknown, and texts of these
    alone are as well; of several words hardly any are. Texts with one beginning, or one end, may
    have been cut to it.
    """
    cells = {key_of(c): c for c in sample_of(frame, _ROWS, seed=9)[column] if c is not None}
    long = [cell for cell in cells.values() if len(elements_of(cell) or []) >= _WORDS]
    if len(long) < 2 * _LEAST:
        return ""
    rows = copy_of(frame.iloc[[0] * len(long)].reset_index(drop=True))
    rows[column] = pd.Series(long, index=rows.index, dtype=frame[column].dtype)
    made = np.concatenate([flat(each) for each in preprocessor.transform(rows).values()], axis=1)
    if not (made != made[:1]).any():
        return ""  # it is no input at all: said elsewhere
    _, which, counts = np.unique(made, axis=0, return_inverse=True, return_counts=True)
    most = int(counts.argmax())
    if counts[most] < max(_LEAST, _SHARE * len(long)):
        return ""
    alike = [cell for cell, group in zip(long, which.ravel(), strict=True) if group == most]
    if _are_cut(alike):
        return ""  # of long ones only an end arrives: said elsewhere
    return (
        f"{len(alike)} of {len(long)} different values of {column!r}, of several words each, "
        f"arrive as one and the same row, such as {str(alike[0])[:40]!r} and {str(alike[1])[:40]!r}"
    )


def _are_cut(cells: list[Any]) -> bool:
    """Say whether all texts begin, or end, with the same word."""
    words = [elements_of(cell) or [] for cell in cells]
    return any(len({key_of(each[place]) for each in words}) == 1 for place in (0, -1))
