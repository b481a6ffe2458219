"""A feature that is the mean of the label over a group of the very rows, the row's own included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from training_core.checks.data.frames import is_number, is_plain
from training_core.checks.subject import Subject

_LEAST = 30  # rows in groups whose labels differ
_EQUAL = 0.3  # share of them that have their group's mean: a sample may cut groups
_ONE_NUMBER = 0.95  # of the groups have one number of the feature
_CLOSE = 1e-6  # of the label's deviation

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class GroupMean:
    """What a feature is.

    Attributes:
        column: The feature's raw column.
        key: The column that groups rows.
        share: Of the rows in groups with different labels, that have exactly their mean or sum.
    """

    column: str
    key: str
    share: float


def group_mean(subject: Subject) -> GroupMean | None:
    """Find a raw feature that is the label's mean, or sum, over the rows of a group.

    Made of a whole table before it was divided, as by `groupby(key)[label].transform("mean")`, it
    holds each row's own label. A mean of earlier rows alone is another number in each row.
    """
    label = subject.task.label
    if subject.task.kind not in ("binary", "regression"):
        return None
    both = pd.concat([subject.train, subject.validation], ignore_index=True)
    if label not in both or not _numeric(both[label]):
        return None
    known = both[label].notna().to_numpy()
    both = both[known].reset_index(drop=True)
    target = both[label].to_numpy(dtype=np.float64)
    keys = [(str(c), codes) for c in both if c != label and (codes := _groups(both[c])) is not None]
    for column in dict.fromkeys(subject.preprocessor.columns):
        if column == label or column not in both or not is_number(both[column]):
            continue
        values = both[column].to_numpy(dtype=np.float64, na_value=np.nan)
        for key, codes in keys:
            if key != column and (share := _share(values, target, codes)) >= _EQUAL:
                return GroupMean(column, key, share)
    return None


def _numeric(values: pd.Series[Any]) -> bool:
    return bool(pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values))


def _groups(values: pd.Series[Any]) -> Codes | None:
    """Return each row's group; None: no two rows share one, or all do."""
    if not is_plain(values.dropna()):
        return None
    codes, names = pd.factorize(values)
    return codes.astype(np.int64) if 1 < len(names) < len(values) else None


def _share(values: npt.NDArray[Any], target: npt.NDArray[Any], codes: Codes) -> float:
    """Return the share of rows, in groups whose labels differ, with their group's mean or sum."""
    there = codes >= 0
    values, target, codes = values[there], target[there], codes[there]
    sizes = np.bincount(codes)
    sums = np.bincount(codes, target)
    with np.errstate(invalid="ignore"):
        means = sums / sizes
    differing = (np.bincount(codes, np.abs(target - means[codes])) > 0)[codes]
    if differing.sum() < _LEAST or not _constant(values[differing], codes[differing]):
        return 0.0
    limit = _CLOSE * max(float(target.std()), 1e-12)
    luck = np.random.default_rng(0).permutation(int(differing.sum()))  # few numbers often meet
    best = 0.0
    for each in (means, sums):
        own = each[codes][differing]
        found, by_luck = (
            float((np.abs(values[differing] - other) <= limit).mean()) for other in (own, own[luck])
        )
        best = max(best, found if found - by_luck >= _EQUAL else 0.0)
    return best


def _constant(values: npt.NDArray[Any], codes: Codes) -> bool:
    """Say whether a feature is one number in nearly every group, and not in all rows."""
    frame = pd.DataFrame({"value": values, "group": codes}).groupby("group")["value"]
    return bool((frame.nunique() <= 1).mean() >= _ONE_NUMBER and len(np.unique(values)) > 1)
