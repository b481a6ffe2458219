"""Which single columns know the target."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from training_core.checks.data.arrays import Numbers

Bools = npt.NDArray[np.bool_]

# A column may agree with the target by luck: one in a million times at most, over all columns.
_LUCK = 6.0
TOO_GOOD = 0.999  # AUC, or share of the target's variance
_LEAST = 50  # rows a rank correlation is judged on
_ROWS_A_VALUE = 20


def same_as_classes(columns: Numbers, target: Numbers) -> Bools:
    """Say which columns hold one value for each class and another one for every other class.

    Args:
        columns: [N, columns].
        target: [N], one number a class.
    """
    classes, counts = np.unique(target, return_counts=True)
    if len(classes) < 2 or not beyond_luck(counts.tolist(), columns.shape[1]):
        return np.zeros(columns.shape[1], dtype=bool)
    first = np.stack([columns[target == value][0] for value in classes])
    ordered = np.sort(first, axis=0)
    same = (np.diff(ordered, axis=0) > 0).all(axis=0)
    for value, its in zip(classes, first, strict=True):
        same &= (columns[target == value] == its).all(axis=0)
    return np.asarray(same)


def monotone_in(columns: Numbers, target: Numbers) -> Bools:
    """Say which columns are a rising or a falling function of a target with many values."""
    values = len(np.unique(target))
    if values < _LEAST:
        return np.zeros(columns.shape[1], dtype=bool)
    by_target = np.argsort(target, kind="stable")
    steps, moved = np.diff(columns[by_target], axis=0), np.diff(target[by_target]) > 0
    level = (steps[~moved] == 0).all(axis=0)
    one_way = (steps >= 0).all(axis=0) | (steps <= 0).all(axis=0)
    fine = (steps[moved] != 0).mean(axis=0) > 0.9  # rounding and clipping may join neighbours
    return np.asarray(level & one_way & fine)


def ranks_well(columns: Numbers, target: Numbers, *, classes: bool) -> Numbers:
    """Return how well each column's order tells the target: AUC, or squared rank correlation."""
    nothing = np.zeros(columns.shape[1])
    ranks = np.stack([_ranks(column) for column in columns.T], axis=1)
    if classes:
        yes = target == target.max()
        counts = [int(yes.sum()), int((~yes).sum())]
        if not beyond_luck(counts, columns.shape[1]):
            return nothing
        area = (ranks[yes].sum(axis=0) - counts[0] * (counts[0] + 1) / 2) / (counts[0] * counts[1])
        return np.asarray(np.maximum(area, 1 - area))
    if len(target) < _LEAST:
        return nothing
    own = _ranks(target)
    centred, own = ranks - ranks.mean(axis=0), own - own.mean()
    norm = np.sqrt((centred**2).sum(axis=0) * (own**2).sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.nan_to_num((centred * own[:, None]).sum(axis=0) / norm) ** 2)


def rates_well(column: Numbers, target: Numbers) -> float:
    """Return the share of the target's variance that its mean in each value of a column explains.

    Learned on one half of the rows, judged on the other; 0 where values hardly repeat.

    Args:
        column: [N].
        target: [N, columns].
    """
    values, codes = np.unique(column, return_inverse=True)
    half = len(column) // 2
    if len(values) < 2 or len(values) * _ROWS_A_VALUE > half:
        return 0.0
    counts = np.bincount(codes[:half], minlength=len(values))
    mean = target[:half].mean(axis=0)
    sums = np.stack(
        [np.bincount(codes[:half], y, minlength=len(values)) for y in target[:half].T], axis=1
    )
    rates = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], mean)
    judged = target[half:]
    spread = ((judged - judged.mean(axis=0)) ** 2).sum()
    return float(1 - ((judged - rates[codes[half:]]) ** 2).sum() / spread) if spread > 0 else 0.0


def _ranks(values: Numbers) -> Numbers:
    """Return ranks from 1, the mean one of equal values (to import scipy.stats takes seconds)."""
    ordered = np.sort(values)
    first, last = (np.searchsorted(ordered, values, side=s) for s in ("left", "right"))
    return np.asarray((first + last + 1) / 2)


def beyond_luck(counts: Sequence[int], columns: int) -> bool:
    """Say whether classes of such sizes are no pattern that one of the columns has by luck."""
    ways = math.lgamma(sum(counts) + 1) - sum(math.lgamma(count + 1) for count in counts)
    return ways / math.log(10) - math.log10(max(1, columns)) > _LUCK
