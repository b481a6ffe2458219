"""Numbers that stand for a class: nulls that were filled with the mean of each row's own class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from training_core.checks.data.frames import is_number, is_plain
from training_core.checks.subject import Subject

_VALUES = 50  # different ones besides: numbers that are measured
_LEAST = 10  # rows of one value
_USUAL, _OUTSTANDING = 0.95, 3.0  # of values by how often they occur, and times as often
_CENTRE = 0.15  # deviations from the mean or median of the class's other rows
_LUCK = 1e-6  # chance that so many rows of any class are all of one
_CLASSES = 20


@dataclass(frozen=True)
class Filled:
    """A raw column whose repeated values are each of one class alone.

    Attributes:
        column: Its name.
        values: Of one class each, the most frequent first.
        share: Of the rows, that have one of them.
    """

    column: str
    values: tuple[float, ...]
    share: float


def filled_by_class(subject: Subject) -> Filled | None:
    """Find a column of measured numbers in which some repeat, each in rows of one class.

    A value that repeats may mean something (0: never bought), and then it is rows of one class at
    most, or lies anywhere. Several such values, each of another class and in the middle of what
    that class's other rows have, were made of what is to be predicted.
    """
    task = subject.task
    label = task.label
    if task.kind not in ("binary", "multiclass") or label not in subject.train:
        return None
    classes = subject.train[label]
    if not is_plain(classes.dropna()) or not 2 <= classes.nunique() <= _CLASSES:
        return None
    codes = pd.factorize(classes)[0]
    largest = float(np.bincount(codes[codes >= 0]).max() / max(1, (codes >= 0).sum()))
    for column in dict.fromkeys(subject.preprocessor.columns):
        if column in subject.train and column != label and is_number(subject.train[column]):
            found = _filled(subject.train[column], codes, largest)
            if found is not None:
                return found
    return None


def _filled(values: pd.Series, codes: np.ndarray, largest: float) -> Filled | None:
    known = values.notna().to_numpy() & (codes >= 0)
    numbers, own = values.to_numpy(dtype=np.float64, na_value=np.nan)[known], codes[known]
    each, places, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    repeated = np.flatnonzero(counts >= max(_LEAST, _OUTSTANDING * np.quantile(counts, _USUAL)))
    if len(repeated) < 2 or len(each) - len(repeated) < _VALUES:
        return None
    low, high = np.quantile(numbers, [0.01, 0.99])
    measured = ~np.isin(places, repeated)
    pure: dict[float, int] = {}
    for place in repeated[np.argsort(-counts[repeated])]:
        inside = own[places == place]
        others = numbers[measured & (own == inside[0])]
        if not low < each[place] < high or len(others) < _LEAST:
            continue
        centres = np.array([others.mean(), np.median(others)])
        near = np.abs(centres - each[place]).min() <= _CENTRE * others.std()
        if near and (inside == inside[0]).all() and largest ** len(inside) < _LUCK:
            pure[float(each[place])] = int(inside[0])
    if len(set(pure.values())) < 2:
        return None
    share = float(np.isin(numbers, list(pure)).sum() / max(1, len(values)))
    return Filled(str(values.name), tuple(pure), share)
