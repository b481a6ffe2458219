"""Equal rows that no chance has made: long ones that are equal to the end once they begin so."""

from __future__ import annotations

from collections import Counter

import numpy as np

from training_core.checks.data.arrays import Numbers, flat
from training_core.examples import Examples

_ROWS, _CELLS = 4_000, 4_000_000  # of each part
_COLUMNS = 400  # that are judged
_LONG = 16  # columns in which rows differ
_OFTEN = 0.5  # a column in which more rows than these have one value says little
_ALONE = 0.25  # share of the rows that occur once: a small pool would leave few
_TIMES, _MANY = 8, 0.01  # as often at most, in number and share of rows: a favourite comes oftener
_SURE = 0.8  # share of the pairs alike in one half that are alike in the other
_LIFT = 20.0  # times what the other half's own frequencies would make


def copied(train: Examples, held_back: Examples) -> str:
    """Say why equal rows are copies of each other; empty: they may be chance.

    Rows that chance made equal have far more neighbours that begin as they do and end otherwise,
    or the other way round. Copies have none: two that agree in one half agree in all. That alone
    would be so of a small pool of fixed rows too, from which some come again and again.
    """
    table, lengths = _joined(train, held_back)
    if not table.shape[1]:
        return ""
    rows = [row[:length].tobytes() for row, length in zip(table, lengths, strict=True)]
    times = Counter(rows)
    first = {row: place for place, row in reversed(list(enumerate(rows)))}
    once = np.array(list(first.values()))
    if max(times.values()) > max(_TIMES, _MANY * len(rows)):
        return ""
    if sum(count == 1 for count in times.values()) < _ALONE * len(rows):
        return ""
    judged = np.linspace(0, table.shape[1] - 1, min(_COLUMNS, table.shape[1])).astype(int)
    different = table[np.ix_(once, judged)]
    commonest = np.array([np.unique(c, return_counts=True)[1].max() for c in different.T])
    if (commonest <= _OFTEN * len(different)).sum() < _LONG:
        return ""
    twins = _pairs(rows)
    halves = [
        [table[i, : lengths[i] // 2].tobytes() for i in once],
        [table[i, lengths[i] // 2 : lengths[i]].tobytes() for i in once],
    ]
    among = len(once) * (len(once) - 1) / 2
    alike = [_pairs(half) for half in halves]
    for known, other in (alike, alike[::-1]):
        sure = twins / (twins + known)
        if sure >= _SURE and sure >= _LIFT * other / among:
            return (
                f"of the rows that agree in one half {sure:.0%} agree in all, and none occurs more "
                f"than {max(times.values())} times: copies, not chance"
            )
    return ""


def _pairs(values: list[bytes]) -> float:
    return sum(count * (count - 1) / 2 for count in Counter(values).values())


def _joined(train: Examples, held_back: Examples) -> tuple[Numbers, np.ndarray]:
    """Return all inputs as one table [N, columns], and each row's columns before its padding."""
    tables = []
    width = sum(array[0].numel() for array in train.arrays.values())
    rows = min(_ROWS, max(256, _CELLS // max(1, width)))
    for name, array in train.arrays.items():
        one, other = flat(array[:rows]), flat(held_back.arrays[name][:rows])
        width = min(one.shape[1], other.shape[1])
        tables.append(np.concatenate([one[:, :width], other[:, :width]]))
    table = np.ascontiguousarray(np.concatenate(tables, axis=1) + 0.0)
    backwards = table[:, ::-1]
    padding = (backwards == backwards[:, :1]).cumprod(axis=1).sum(axis=1)
    return table, np.where(padding > 1, table.shape[1] - padding, table.shape[1]).astype(int)
