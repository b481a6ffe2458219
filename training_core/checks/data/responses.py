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
_STEPS = 24  # further ones of numbers, side by side: a slope shows there even among many jumps
_CELLS = 3_000_000  # of the frame that is transformed: wide tables get fewer values
_JUMPS = (256, 65_536, 2**32)  # where whole numbers of 8, 16 and 32 bits begin again


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
        found.append(Response(column, puts[column], _changed(blocks)))
    return found


def saw_tooth(response: Response) -> tuple[str, int, float] | None:
    """Return array, column and period of a tensor that begins again and again as a number grows.

    Linear in the raw number but for jumps of one size, as numbers are that do not fit into their
    type. The period is in units of the raw column. None: monotone, smooth, or too few values.
    """
    if not is_number(response.values) or len(response.values) < 12:
        return None
    raw = response.values.to_numpy(dtype=np.float64)
    for name, (columns, answers) in response.changed.items():
        for column, answer in zip(columns, answers.T, strict=True):
            period = _period(raw, answer)
            if period is not None:
                return name, column, period
    return None


def is_of_a_type(period: float) -> bool:
    """Say whether a period is that of a type of 8, 16 or 32 bits, of the number or ten of it."""
    tens = [10.0**power for power in range(-3, 7)]
    return any(abs(period * ten / jump - 1) < 1e-3 for ten in tens for jump in _JUMPS)


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
    places = np.linspace(0, len(ordered) - 1, min(most, len(ordered))).astype(int)
    picked = ordered[places]
    if most == _VALUES:
        whole = pd.api.types.is_integer_dtype(column.dtype) or bool((ordered % 1 == 0).all())
        step = 1.0 if whole else float(np.ptp(ordered.astype(np.float64))) / 1e4
        middle = float(np.median(ordered.astype(np.float64)))
        near = (round(middle) if whole else middle) + step * np.arange(_STEPS)
        picked = np.concatenate([picked, near[near <= ordered[-1]]])
    return pd.Series(np.unique(picked)).astype(column.dtype)


def _changed(blocks: dict[str, Numbers]) -> dict[str, tuple[list[int], Numbers]]:
    found = {}
    for name, values in blocks.items():
        first = values[:, :1]
        differs = (values != first) & ~(np.isnan(values) & np.isnan(first))
        columns = np.flatnonzero(differs.any(axis=(0, 1)))
        if len(columns):
            base = int(differs[:, :, columns].any(axis=2).sum(axis=1).argmax())
            found[name] = ([int(c) for c in columns], values[base][:, columns])
    return found


def _period(raw: Numbers, answer: Numbers) -> float | None:
    """Return the period of a saw-tooth, in units of `raw`."""
    if not np.isfinite(answer).all():
        return None
    run, rise = np.diff(raw), np.diff(answer)
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = rise / run
    # The slope between neighbours: at least a third of all steps have it.
    shortest = slopes[np.argsort(run, kind="stable")[: max(6, len(run) // 3)]]
    slope = float(np.median(shortest))
    if slope == 0:
        return None
    left = np.sort(answer - slope * raw)
    # A slope between neighbours is known to float32 alone, and reaches over the whole range.
    rounding = 5e-7 * float(np.abs(answer).max()) * float(np.ptp(raw) / run.min())
    gaps = np.diff(left)
    jumps = gaps[gaps > 4 * rounding]
    falls = bool((np.sign(rise) == -np.sign(slope)).any())
    if not len(jumps) or not falls or len(jumps) > 0.75 * len(gaps):
        return None
    # Every value lies on one of few parallel lines, a jump apart, and none goes beyond the jump.
    for part in (4, 3, 2, 1):
        jump = float(jumps.min()) / part
        whole = np.abs(jumps - jump * np.round(jumps / jump)) <= 8 * rounding
        if whole.all() and jump > 20 * rounding and jump >= 0.99 * np.ptp(answer):
            return abs(jump / slope)
    return None
