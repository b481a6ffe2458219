"""What may have become of the label on its way to the target of a regression."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from training_core.checks.data.arrays import Numbers
from training_core.checks.data.frames import copy_of, is_plain
from training_core.checks.data.problem import Problem
from training_core.checks.data.saw_teeth import is_cycle, is_of_a_type, is_round, period_of
from training_core.checks.subject import Subject

_LABELS = 30  # different ones at least
_STEPS = 3  # different targets; two may be yes and no
_INNER = 3  # groups between the first and the last, whose widths tell something
_SHARED = 0.95  # of the rows have the target of another label: a cap joins those beyond it alone
_MEANT, _MUCH = 0.001, 0.01  # of the label's variance, lost by rounding


def of_target(subject: Subject) -> Iterator[Problem]:
    """Labels that differ, and have one target: cut to whole numbers, or overflowed.

    To round to steps of a tenth of a deviation loses 0.1 % of the variance, to steps of a third of
    one 1 % (a twelfth of the step squared): less is no harm, more is what a network cannot learn.
    """
    if subject.task.kind != "regression" or subject.task.label not in subject.train:
        return
    if not is_plain(subject.train[subject.task.label]):
        return
    raw = pd.to_numeric(subject.train[subject.task.label], errors="coerce").to_numpy(np.float64)
    target = np.asarray(subject.task.target(copy_of(subject.train)), dtype=np.float64)
    if target.shape != raw.shape:
        return
    known = np.isfinite(raw) & np.isfinite(target)
    raw, target = raw[known], target[known]
    labels, first = np.unique(raw, return_index=True)
    if len(labels) < _LABELS:
        return
    period = period_of(labels, target[first])
    if period and not is_cycle(period) and (is_of_a_type(period) or not is_round(period)):
        yield Problem(
            fails=True,
            message=f"the target grows with {subject.task.label!r} and begins again every "
            f"{period:.6g}: numbers that do not fit into their type",
            advice="use a type that holds the label's numbers",
            measured=period,
        )
    lost = _lost(raw, target)
    if lost > _MEANT:
        yield Problem(
            fails=lost > _MUCH,
            message=f"{len(labels)} different values of {subject.task.label!r} become "
            f"{len(np.unique(target))} targets in equal steps: {lost:.1%} of the variance is "
            "rounded away",
            advice="keep the target's decimals; if they are meant to go, round the label's column",
            measured=lost, limit=_MUCH,
        )  # fmt: skip


def _lost(raw: Numbers, target: Numbers) -> float:
    """Return the share of the labels' variance within equal targets; 0 if these are no stairs."""
    steps, codes = np.unique(target, return_inverse=True)
    if len(steps) < _STEPS or np.ptp(raw) == 0:
        return 0.0
    low, high = (np.full(len(steps), fill) for fill in (np.inf, -np.inf))
    np.minimum.at(low, codes, raw)
    np.maximum.at(high, codes, raw)
    shared = (low < high)[codes].mean()
    monotone = (high[:-1] < low[1:]).all() or (low[:-1] > high[1:]).all()
    step = np.diff(steps).min()
    heights = np.diff(steps) / step
    equal = np.abs(heights - np.round(heights)).max() < 1e-3 and np.median(heights) < 1.5
    # Cut to whole numbers, or steps of the same width: groups that somebody chose have neither.
    cut = np.abs(raw - target).max() <= 1.001 * step or _of_one_width(low, high)
    if shared < _SHARED or not monotone or not equal or not cut:
        return 0.0
    means = np.bincount(codes, raw) / np.bincount(codes)
    return float(((raw - means[codes]) ** 2).mean() / raw.var())


def _of_one_width(low: Numbers, high: Numbers) -> bool:
    """Say whether groups of labels may all be as wide, but for the one around 0 of a cut to it.

    Args:
        low, high: The least and the largest label of each group, in the order of their targets.
    """
    if low[0] > low[-1]:
        low, high = low[::-1], high[::-1]
    least, most = (high - low)[1:-1], low[2:] - high[:-2]
    if len(least) < _INNER:
        return False
    others = np.arange(len(least)) != least.argmax()
    return bool(least[others].max() <= most[others].min())
