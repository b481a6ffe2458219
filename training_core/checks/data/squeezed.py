"""Numbers of which little is left in the tensors: squeezed by a stand-in, or rounded away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from training_core.checks.data.arrays import Numbers, column_name, flat, thinned
from training_core.checks.data.frames import is_number, label_columns
from training_core.checks.data.problem import Problem
from training_core.checks.subject import Subject

_ROWS = 20  # at least, of the known and of the stand-ins
_SHARE = 0.01  # of the rows are stand-ins at least: a few outliers are none
_SQUEEZED, _TIGHT = 0.1, 0.25  # deviation of the known, of that of all rows
_AWAY = 3.0  # ranges of the known, between them and the stand-in
_MOST = (0.01, 0.99)  # quantiles, between which nearly all of the known lie
_FOLLOWS = 0.5  # correlation of ranks
_SAME = 1e-3  # of a tensor's deviation: the rows of a stand-in differ by no more
# Standardised numbers differ by 1 or so. Sines of whole turns differ by 1e-15 where the angle is
# calculated in 64 bits, and by 3e-5 (four cycles of 24 hours) where it is in 32.
_NOISE, _FAINT = 1e-9, 1e-4
_TINY = 1e3  # times a faint tensor's range: raw numbers as small as that arrive as they are

Mask = npt.NDArray[np.bool_]


def of_stand_ins(subject: Subject) -> Iterator[Problem]:
    """Nulls, or numbers such as -999 in their place, so far away that all others are one number.

    Of a column scaled with a stand-in among its numbers, what is known differs by a hundredth of
    what it should. Nothing is said where the tensors are clipped, or nulls have a place nearby.
    """
    labels = label_columns(subject.task)
    arrays = {
        name: flat(array)
        for name, array in thinned(subject.examples).items()
        if array.is_floating_point()
    }
    for column in dict.fromkeys(subject.preprocessor.columns):
        if column in labels or column not in subject.train or not is_number(subject.train[column]):
            continue
        raw = subject.train[column].to_numpy(dtype=np.float64, na_value=np.nan)
        for said, away, fails in _stand_ins(raw):
            worst = min(
                (
                    (ratio, name, place)
                    for name, columns in arrays.items()
                    for ratio, place in _ratios(columns, away[: len(columns)], raw[: len(columns)])
                ),
                default=None,
            )
            if worst is None or worst[0] >= _TIGHT:
                continue
            ratio, name, place = worst
            shape = tuple(subject.examples.arrays[name].shape)
            which = column_name(subject.preprocessor, name, shape, place)
            yield Problem(
                fails=fails and ratio < _SQUEEZED,
                message=f"{said.format(column=repr(column), share=away.mean())} so far away in "
                f"{which} that all other rows differ by {ratio:.2g} of its deviation: to a network "
                "they are nearly one number",
                advice="leave stand-ins out of mean and deviation, write 0 (the mean) in their "
                "place afterwards, and add a column that says where they were",
                measured=ratio, limit=_SQUEEZED,
            )  # fmt: skip
            break


def of_noise(subject: Subject) -> Iterator[Problem]:
    """Columns that differ from row to row by the rounding of a calculation, and by nothing else."""
    raw_ranges = _ranges(subject)
    for name, array in thinned(subject.examples).items():
        if not array.is_floating_point() or array.ndim < 2:
            continue
        columns = flat(array) if array.ndim == 2 else flat(array).reshape(-1, 1)
        with np.errstate(invalid="ignore"):
            spread = np.ptp(columns, axis=0) / np.maximum(1.0, np.abs(columns).max(axis=0))
        faint = (spread > 0) & (spread < _FAINT)
        faint &= np.array([not (raw_ranges < _TINY * np.ptp(c)).any() for c in columns.T])
        if not faint.any():
            continue
        place = int(np.where(faint, spread, np.inf).argmin())
        which = (
            column_name(subject.preprocessor, name, tuple(array.shape), place)
            if array.ndim == 2
            else repr(name)
        )
        more = f" (and {int(faint.sum()) - 1} more)" if faint.sum() > 1 else ""
        yield Problem(
            fails=bool(spread[place] < _NOISE),
            message=f"{which}{more} differs from row to row by {spread[place]:.2g} at most, as "
            "roundings do: of the raw column it is made of, nothing arrives",
            advice="look at the formula: a sine or cosine needs the period, as in sin(2πt / 24); "
            "other numbers need to be scaled",
            measured=float(spread[place]), limit=_NOISE,
        )  # fmt: skip


def _stand_ins(raw: Numbers) -> Iterator[tuple[str, Mask, bool]]:
    """Yield what may stand for an unknown number: words, rows, and whether it surely does."""
    unknown = ~np.isfinite(raw)
    yield "the nulls of {column} ({share:.0%} of the rows) are", unknown, True
    known = raw[~unknown]
    if len(known) < 2 * _ROWS:
        return
    for value in (known.min(), known.max()):
        rest = known[known != value]
        if len(rest) < _ROWS or len(known) - len(rest) < max(_ROWS, _SHARE * len(known)):
            continue
        gap = max(float(rest.min() - value), float(value - rest.max()))
        if np.ptp(rest) > 0 and gap > _AWAY * np.ptp(rest):
            said = f"{value:g} in {{column}} ({{share:.0%}} of the rows) is"
            yield said, raw == value, _is_written(float(value))


def _is_written(value: float) -> bool:
    """Say whether a number is one that people write for an unknown one: 999, -9999."""
    digits = f"{abs(value):.0f}"
    return value == int(value) and len(digits) >= 3 and set(digits) == {"9"}


def _ratios(columns: Numbers, away: Mask, raw: Numbers) -> Iterator[tuple[float, int]]:
    """Yield the squeeze of each column in which the stand-in is one number far from the others."""
    rest = np.isfinite(raw) & ~away
    if min(away.sum(), rest.sum()) < _ROWS or away.mean() < _SHARE:
        return
    for place, column in enumerate(columns.T):
        there, other = column[away], column[rest]
        whole = float(column[away | rest].std())
        low, high = (float(edge) for edge in np.quantile(other, _MOST))
        wide = high - low
        if not whole > 0 or wide == 0 or np.ptp(there) > _SAME * whole:
            continue
        gap = max(low - float(there.max()), float(there.min()) - high)
        if gap > _AWAY * wide and _follows(other, raw[rest]):
            yield float(other.std()) / whole, place


def _follows(column: Numbers, raw: Numbers) -> bool:
    """Say whether a tensor's column is made of this raw one: their order is much the same."""
    if len(np.unique(raw)) < 2:
        return False
    return abs(float(pd.Series(column).corr(pd.Series(raw), method="spearman"))) > _FOLLOWS


def _ranges(subject: Subject) -> Numbers:
    """Return the range of each raw column of numbers that varies, and of numbers in cells."""
    found: list[float] = []
    for column in dict.fromkeys(subject.preprocessor.columns):
        if column not in subject.train:
            continue
        values: Any = subject.train[column]
        if is_number(values):
            numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            try:
                cells = [np.ravel(np.asarray(cell, np.float64)) for cell in values[:64]]
                numbers = np.concatenate(cells) if cells else np.zeros(0)
            except (TypeError, ValueError):
                continue
        numbers = numbers[np.isfinite(numbers)]
        if len(numbers) and np.ptp(numbers) > 0:
            found.append(float(np.ptp(numbers)))
    return np.array(found)
