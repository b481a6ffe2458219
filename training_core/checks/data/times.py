"""Held-back rows that lie between train rows in time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from training_core.checks.data.arrays import Numbers, flat
from training_core.checks.data.frames import label_columns
from training_core.checks.data.telling import ranks_well
from training_core.checks.subject import Subject

_LEAST = 50  # rows of each part, and different times
_BETWEEN = 0.8  # share of held-back rows with train rows before and after them, and near
_NEAR = 4.0  # times the usual distance of one row to the next
_EXPLAINED = 0.5  # of the target's variance, by the rows just before and after
_CLASSES = 64
_ISO = r"^\d{4}-\d{2}-\d{2}"


@dataclass(frozen=True)
class Between:
    """A raw column of times by which the rows are not divided.

    Attributes:
        column: Its name.
        between: Share of held-back rows that have train rows just before and just after them.
        explained: Of the held-back target's variance, by the mean of those two rows' targets.
    """

    column: str
    between: float
    explained: float


def between_in_time(subject: Subject) -> Between | None:
    """Find a column of times where a held-back row's neighbours are in train and have its target.

    Such a split asks for what is between two known values, and serving for what is after them all:
    Bergmeir and Benítez 2012, On the use of cross-validation for time series predictor evaluation.
    """
    if subject.task.kind == "sequence":
        return None
    for column, train, held_back in _times(subject):
        if min(len(np.unique(train)), len(held_back)) < _LEAST:
            continue
        order = np.argsort(train, kind="stable")
        ordered = train[order]
        after = np.searchsorted(ordered, held_back, side="right")
        inside = (after > 0) & (after < len(ordered))
        before, after = np.maximum(after - 1, 0), np.minimum(after, len(ordered) - 1)
        usual = max(float(np.median(np.diff(np.unique(np.concatenate([train, held_back]))))), 1.0)
        near = (held_back - ordered[before] <= _NEAR * usual) & (
            ordered[after] - held_back <= _NEAR * usual
        )
        between = inside & near
        if between.mean() < _BETWEEN or between.sum() < _LEAST:
            continue
        known, own = _targets(subject)
        told = (known[order[before]] + known[order[after]])[between] / 2
        explained = max(
            float(ranks_well(told[:, [i]], own[between, i], classes=False)[0])
            for i in range(own.shape[1])
        )
        if explained >= _EXPLAINED:
            return Between(column, float(between.mean()), explained)
    return None


def _times(subject: Subject) -> Iterator[tuple[str, Numbers, Numbers]]:
    """Yield raw columns of times, of both parts; seconds."""
    for column in subject.train.columns:
        if column in label_columns(subject.task) or column not in subject.validation.columns:
            continue
        both = [frame[column] for frame in (subject.train, subject.validation)]
        if not pd.api.types.is_datetime64_any_dtype(both[0].dtype):
            first = both[0].head(20)
            if not all(isinstance(cell, str) for cell in first):
                continue
            if not first.str.match(_ISO).all():
                continue
        times = [pd.to_datetime(each, utc=True, errors="coerce", format="mixed") for each in both]
        if any(each.isna().any() for each in times):
            continue
        train, held_back = (
            each.dt.tz_localize(None).to_numpy("datetime64[ns]").astype(np.float64) / 1e9
            for each in times
        )
        yield str(column), train, held_back


def _targets(subject: Subject) -> tuple[Numbers, Numbers]:
    """Return a column for each label, or for each of the most frequent classes."""
    known, own = flat(subject.examples.target), flat(subject.held_back.target)
    if subject.task.kind != "multiclass":
        return known[:, :_CLASSES], own[:, :_CLASSES]
    classes, counts = np.unique(known, return_counts=True)
    kept = classes[np.argsort(-counts, kind="stable")[:_CLASSES]]
    return (known == kept).astype(np.float64), (own == kept).astype(np.float64)
