"""Whether a frequent word is told from the padding behind a text."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from training_core.checks.data.elements import cell_of, elements_of
from training_core.checks.data.frames import copy_of, sample_of
from training_core.checks.data.nested import key_of
from training_core.task import Preprocessor

_ROWS = 200
_FREQUENT = 20
_FEWEST = 4  # different elements
_SEVERAL = 2  # words taken for padding: more are a list of words that are left out on purpose


def words_as_padding(
    preprocessor: Preprocessor, frame: pd.DataFrame, column: str, arrays: list[str]
) -> str:
    """Say which of the most frequent elements arrive as what stands behind a text; empty: none.

    Of cells of two elements, the first is exchanged. One that is left out moves the second forward,
    as a stop word does; one whose number is that of padding leaves it where it is.

    Args:
        preprocessor: Fitted.
        frame: Raw rows.
        column: Of texts or lists.
        arrays: Those that hold elements in their order, one a position, [N, T].
    """
    rows = sample_of(frame, _ROWS, seed=5).reset_index(drop=True)
    lists = [cell for cell in map(elements_of, rows[column]) if cell]
    every = {key_of(element): element for cell in lists for element in cell}
    counts = Counter(key_of(element) for cell in lists for element in cell)
    words = [every[key] for key, _ in counts.most_common(_FREQUENT)]
    if len(words) < _FEWEST or not all(isinstance(word, str) for word in words):  # 0 is a number
        return ""
    base = rows.iloc[[next(i for i, cell in enumerate(rows[column]) if elements_of(cell))]]
    pairs = [(word, words[place - 1]) for place, word in enumerate(words)]
    frames = copy_of(base.iloc[[0] * len(pairs)].reset_index(drop=True))
    cells = [cell_of(base[column].iloc[0], list(pair)) for pair in pairs]
    frames[column] = pd.Series(cells, index=frames.index, dtype=rows[column].dtype)
    made = preprocessor.transform(frames)
    for name in arrays:
        array = made[name]
        if array.ndim != 2 or array.shape[1] < 4 or not np.issubdtype(array.dtype, np.integer):
            continue
        padding = _padding(array)
        if padding is None:
            continue
        taken = [
            word for word, (one, second) in zip(words, _codes(array, padding), strict=True)
            if one == padding and second != padding
        ]  # fmt: skip
        if 0 < len(taken) <= _SEVERAL:
            said = " and ".join(repr(word) for word in taken)
            return (
                f"{said}, of the {len(words)} most frequent elements of {column!r}, arrives in "
                f"{name!r} as {padding}, which stands behind short texts too"
            )
    return ""


def _padding(array: np.ndarray[Any, np.dtype[Any]]) -> Any | None:
    """Return what fills an array behind, or before, cells of two elements; None: nothing does."""
    for edge in (array[:, -1], array[:, 0]):
        if (edge == edge[0]).all():
            return edge[0]
    return None


def _codes(array: np.ndarray[Any, np.dtype[Any]], padding: Any) -> list[tuple[Any, Any]]:
    """Return the numbers of both elements of each row, whatever stands before and behind them."""
    others = (array != padding).any(axis=0)
    varies = (array != array[:1]).any(axis=0)
    places = np.flatnonzero(others & varies)
    if len(places) != 2:
        return [(None, padding)] * len(array)
    return [(row[places[0]], row[places[1]]) for row in array]
