"""Ids that went through single precision, where whole numbers beyond 2**24 become one another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from training_core.checks.data.arrays import flat, is_index
from training_core.checks.data.frames import copy_of, is_number, label_columns
from training_core.checks.data.problem import Problem
from training_core.checks.subject import Subject

_EXACT = 2**24  # every whole number up to it is one of float32
_FREQUENT, _VALUES = 5, 512  # rows of a value; values that are looked at, frequent ones first
_LEAST, _FEWER = 8, 0.9  # values that are merged, and what is left of all of them
_APART = 0.9  # of the values that float32 tells apart: in bins or hashed, fewer are


def of_singles(subject: Subject) -> Iterator[Problem]:
    """Yield columns of ids whose indices are the same just where float32 is.

    An id of nine digits is rounded to the next 64th: neighbours become one row of the embedding.
    Bins join other values as well, and hashes do not join neighbours.
    """
    labels = label_columns(subject.task)
    indices = [name for name, array in subject.examples.arrays.items() if is_index(array)]
    for column in dict.fromkeys(subject.preprocessor.columns):
        if column in labels or column not in subject.train or not indices:
            continue
        values = _frequent(subject.train[column])
        _, groups = np.unique(values.astype(np.float32), return_inverse=True)
        different = int(groups.max()) + 1 if len(groups) else 0
        if len(values) - different < _LEAST or different > _FEWER * len(values):
            continue
        codes = _codes(subject, column, values, indices)
        if codes is None or codes.max() + 1 < _APART * different:
            continue
        both = np.unique(np.stack([groups, codes], axis=1), axis=0)
        if len(both) == different:  # each value of float32 has one code
            step = np.spacing(np.float32(np.abs(values).max()))
            yield Problem(
                fails=True,
                message=f"{len(values)} ids of {column!r} have {codes.max() + 1} indices, the same "
                f"for all that float32 rounds to one: ids went through single precision, which "
                f"knows them by {step:g}",
                advice="keep ids as whole numbers (int64) or as texts all the way; float32 is "
                "exact up to 16,777,216 only",
                measured=float(codes.max() + 1), limit=float(len(values)),
            )  # fmt: skip


def _frequent(raw: pd.Series[Any]) -> npt.NDArray[np.int64]:
    """Return whole numbers that several rows have; none, where all are small or some are not."""
    none = np.zeros(0, dtype=np.int64)
    if not is_number(raw):
        return none
    counts = raw.dropna().value_counts()
    counts = counts[counts >= _FREQUENT].iloc[:_VALUES]
    try:
        values = counts.index.to_numpy(dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        return none
    if not (np.asarray(counts.index) == values).all() or not (np.abs(values) > _EXACT).any():
        return none
    return values


def _codes(
    subject: Subject, column: str, values: npt.NDArray[np.int64], names: list[str]
) -> npt.NDArray[np.int64] | None:
    """Return a number for each value: the same where all indices of a row are."""
    frame = subject.train.iloc[[0] * len(values)].reset_index(drop=True)
    frame[column] = pd.Series(values).astype(subject.train[column].dtype)
    try:
        arrays = subject.preprocessor.transform(copy_of(frame))
    except Exception:  # noqa: BLE001 (the user's code may refuse a row that was put together so)
        return None
    table = np.concatenate([flat(torch.as_tensor(arrays[name])) for name in names], axis=1)
    return np.unique(table, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
