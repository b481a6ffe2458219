"""What a preprocessor has learned: the numbers of its state, and where they may come from."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from training_core.checks.data.arrays import Numbers
from training_core.checks.data.frames import is_number
from training_core.task import Preprocessor

_LEAVES = 20_000  # of a state that are looked at
_CELLS = 4_000_000  # of a column of arrays
_ROUND = 4  # significant digits of a number that somebody may have written down
_QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)

Leaf = float | str | bool | None


def leaves_of(preprocessor: Preprocessor) -> dict[str, Leaf]:
    """Return the values of a state by their place in it, such as `means[3]`."""
    state = json.loads(json.dumps(preprocessor.state_dict()))
    found: dict[str, Leaf] = {}
    for place, value in _walk(state, ""):
        found[place] = value
        if len(found) >= _LEAVES:
            break
    return found


def is_computed(value: Leaf) -> bool:
    """Say whether a number has been calculated, and not written down or taken from a formula.

    Numbers of at most four digits, as they are, inverted, squared or divided by pi, in 64 or 32
    bits, may be anybody's constants.
    """
    if not isinstance(value, float) or not math.isfinite(value) or value == int(value):
        return False
    close = 1e-12 if float(np.float32(value)) != value else 1e-6
    formulas = [value, 1 / value, value * value, value / math.pi, math.pi / value]
    formulas += [math.exp(value) if abs(value) < 20 else value, math.log(abs(value)), value * 255]
    return not any(abs(x - float(f"{x:.{_ROUND}g}")) <= close * abs(x) for x in formulas)


def moved(frame: pd.DataFrame, *, but: list[str]) -> pd.DataFrame:
    """Return rows whose real numbers are other ones: scaled and shifted, with as many decimals."""
    changed = frame.copy()
    for column in frame.columns:
        values = frame[column]
        if column in but or not pd.api.types.is_float_dtype(values.dtype):
            cell = values.iloc[0]
            if isinstance(cell, np.ndarray) and np.issubdtype(cell.dtype, np.floating):
                moved_cells = [cell * 1.37 + 0.11 for cell in values]
                changed[column] = pd.Series(moved_cells, index=frame.index, dtype=object)
            continue
        changed[column] = values * 1.37 + 0.61 * (float(values.std()) or 1.0)
    return changed


def statistics_of(frame: pd.DataFrame) -> tuple[list[str], Numbers, Numbers]:
    """Return names, values and standard errors of what one may learn from columns of numbers."""
    names: list[str] = []
    values: list[float] = []
    errors: list[float] = []
    for column, numbers in _numbers(frame):
        for said, known in _scales(numbers):
            deviation, count = float(known.std()), math.sqrt(len(known))
            error = deviation / count
            figures = {
                "mean": (float(known.mean()), error),
                "deviation": (deviation, error),
                "deviation (n - 1)": (float(known.std(ddof=1)), error),
                "variance": (deviation**2, 2 * deviation * error),
                "variance (n - 1)": (float(known.var(ddof=1)), 2 * deviation * error),
                "minimum": (float(known.min()), 0.0),
                "maximum": (float(known.max()), 0.0),
            }
            for share, value in zip(_QUANTILES, np.quantile(known, _QUANTILES), strict=True):
                figures[f"quantile {share:g}"] = (float(value), 2 * error)
            if deviation > 0:
                figures["1 / deviation"] = (1 / deviation, error / deviation**2)
            for what, (value, its_error) in figures.items():
                names.append(f"{what} of {said}{column!r}")
                values.append(value)
                errors.append(its_error)
    return names, np.array(values), np.array(errors)


def _walk(state: Any, place: str) -> Iterator[tuple[str, Leaf]]:
    if isinstance(state, dict):
        for key, value in state.items():
            yield from _walk(value, f"{place}.{key}" if place else str(key))
    elif isinstance(state, list):
        for i, value in enumerate(state):
            yield from _walk(value, f"{place}[{i}]")
    else:
        yield place, state


def _numbers(frame: pd.DataFrame) -> Iterator[tuple[str, Numbers]]:
    """Finite numbers of each column, those inside of arrays together and place by place."""
    for column in frame.columns:
        values = frame[column]
        if is_number(values):
            numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
            yield str(column), numbers[np.isfinite(numbers)]
            continue
        first = values.iloc[0]
        if not isinstance(first, np.ndarray | list) or not np.size(first):
            continue
        try:
            cells = np.stack([np.asarray(c) for c in values[: _CELLS // np.size(first)]])
            cells = cells.astype(np.float64)
        except (ValueError, TypeError):  # of several lengths, or of words
            continue
        yield str(column), cells.ravel()
        for axis in {1, cells.ndim - 1}:  # channels may be first or last
            if cells.ndim == 4 and cells.shape[axis] <= 4:
                for channel in range(cells.shape[axis]):
                    yield f"{column} channel {channel}", cells.take(channel, axis=axis).ravel()


def _scales(numbers: Numbers) -> Iterator[tuple[str, Numbers]]:
    """The numbers themselves, and what is often made of them first."""
    if len(numbers) < 2 or numbers.min() == numbers.max():
        return
    yield "", numbers
    if numbers.min() > 0:
        yield "log ", np.log(numbers)
    if numbers.min() >= 0:
        yield "log(1 + x) of ", np.log1p(numbers)
    if numbers.min() >= 0 and 1.5 < numbers.max() <= 255:
        yield "1/255 of ", numbers / 255
