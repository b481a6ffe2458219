"""What chance and the season do to clean batches: thresholds from the data's own past.

Three looks at the days of a reference (its clusters), never at its rows:

- *drawn*: batches put together from the reference's own days, in blocks of up to a week (moving
  block bootstrap: Künsch 1989), against a reference drawn likewise. What chance does.
- *past*: each window of the past, as long as the new batch, against all that came before it.
  What clean batches have looked like so far.
- *steps*: each window of the past against the one just before it; as long as the new batch, but a
  third of the past at most. How fast the data moves. Where days are missing between the reference
  and the new batch, as many are left out here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from components.validate_data.profile import Counts, Floats, Profile

WEEK = 7
# One draw at a time would cost a loop in Python, all at once 1,000 draws x 2,000 bins x 8 bytes.
_DRAWS_AT_ONCE = 250
Measure = Callable[[Floats, Floats], Floats]  # counts now and before [..., bins] -> [...]


@dataclass(frozen=True)
class Windows:
    """Pairs of spans of clusters that are compared: [first, end) each, int64 [pairs]."""

    now: tuple[Counts, Counts]
    before: tuple[Counts, Counts]

    @property
    def count(self) -> int:
        return len(self.now[0])


@dataclass(frozen=True)
class History:
    """How the days of a reference are put together to batches like the new one.

    Attributes:
        drawn: float64 [draws, clusters]: how often each cluster is in each drawn batch.
        drawn_before: The same for the reference that it is held against.
        stepped: float64 [draws, clusters], and its reference: two windows of a step.
        past: Windows of the past against all before them.
        steps: Windows of the past against the ones just before them.
        tail: First cluster of the end of the reference that a new batch's beginning follows.
        head: Clusters of the new batch that are that beginning.
        rows: Of the new batch: a drawn one with more is thinned to as many.
    """

    drawn: Floats
    drawn_before: Floats
    stepped: Floats
    stepped_before: Floats
    past: Windows
    steps: Windows
    tail: int
    head: int
    rows: int


def history_of(now: Profile, before: Profile, *, draws: int, seed: int = 0) -> History:
    """Lay out the windows of a reference that are like a new batch."""
    random = np.random.default_rng(seed)
    clusters = len(before.first_days)
    length = min(_length(now, before), clusters)
    step = max(1, min(length, clusters // 3))
    block = max(1, min(WEEK, length, clusters // 3)) if before.ordered else 1
    none = np.zeros(0, np.int64)
    past = steps = Windows((none, none), (none, none))
    if before.ordered and clusters >= 2 * length:
        first = np.arange(clusters - length, length - 1, -max(1, length // 4))[::-1]
        past = Windows((first, first + length), (np.zeros_like(first), first))
    gap = _gap(now, before) if before.ordered and now.ordered else 0
    if before.ordered and clusters >= 2 * step + gap:
        first = np.arange(step + gap, clusters - step + 1)
        steps = Windows((first, first + step), (first - gap - step, first - gap))
    return History(
        drawn=_drawn(random, clusters, length, block, draws),
        drawn_before=_drawn(random, clusters, clusters, block, draws),
        stepped=_drawn(random, clusters, step, block, draws),
        stepped_before=_drawn(random, clusters, step, block, draws),
        past=past,
        steps=steps,
        tail=clusters - step,
        head=step,
        rows=int(now.cluster_rows.sum()),
    )


def _length(now: Profile, before: Profile) -> int:
    """How many of the reference's clusters are as much as the new batch."""
    rows = now.cluster_rows.sum(axis=0)
    if not rows.sum() or not len(before.first_days):
        return 1
    if not (now.ordered and before.ordered):
        share = float(rows.sum()) / max(1.0, float(before.cluster_rows.sum()))
        return max(1, round(share * len(before.first_days)))
    upto = np.cumsum(rows) / rows.sum()
    # a month that is cut by local time has a few hours of the day before and after it
    inner = (upto > 0.01) & (upto - rows / rows.sum() < 0.99)
    days: list[bool] = inner.tolist()
    return max(1, sum(days))


def _gap(now: Profile, before: Profile) -> int:
    """Days without rows between the reference and the new batch."""
    rows = now.cluster_rows.sum(axis=0)
    if not rows.sum() or not len(before.first_days):
        return 0
    begins = now.first_days[int(np.searchsorted(np.cumsum(rows), 0.01 * rows.sum()))]
    return max(0, int(begins - before.first_days[-1] - before.lengths[-1]))


def _drawn(
    random: np.random.Generator, clusters: int, length: int, block: int, draws: int
) -> Floats:
    blocks = -(-length // block)
    first = random.integers(0, clusters - block + 1, (draws, blocks, 1))
    found = (first + np.arange(block)).reshape(draws, -1)[:, :length]
    places = np.arange(draws)[:, None] * clusters + found
    counts = np.bincount(places.ravel(), minlength=draws * clusters)
    return counts.reshape(draws, clusters).astype(np.float64)


def spans(counts: Floats, windows: tuple[Counts, Counts]) -> Floats:
    """Sums over spans of clusters.

    Args:
        counts: float64 [clusters, ...].
    """
    zero = np.zeros((1, *counts.shape[1:]))
    upto = np.concatenate([zero, np.cumsum(counts, axis=0)])
    summed: Floats = upto[windows[1]] - upto[windows[0]]
    return summed


@dataclass(frozen=True)
class Past:
    """What a measure was in the past of one column; arrays may be empty.

    Attributes:
        drawn: float64 [draws]: by chance.
        stepped: float64 [draws]: by chance, of two windows of a step.
        windows: float64 [windows]: of windows against all before.
        steps: float64 [windows]: of windows against those just before.
    """

    drawn: Floats
    stepped: Floats
    windows: Floats
    steps: Floats


def past_of(counts: Floats, measure: Measure, history: History, *, thin: bool) -> Past:
    """Take a measure of everything the history offers.

    Args:
        counts: float64 [clusters, ...] of one column.
        measure: Of two stacks of summed counts [n, ...].
        history: See `history_of`.
        thin: Whether `counts` are rows by bin, so that a drawn batch with more rows than the new
            one can be thinned: fewer rows are more chance.
    """
    random = np.random.default_rng(0)

    def drawn(now: Floats, before: Floats) -> Floats:
        parts = []
        for start in range(0, len(now), _DRAWS_AT_ONCE):
            some = slice(start, start + _DRAWS_AT_ONCE)
            batch = np.tensordot(now[some], counts, 1)
            if thin:
                batch = _thinned(batch, history.rows, random)
            parts.append(measure(batch, np.tensordot(before[some], counts, 1)))
        return np.concatenate(parts)

    return Past(
        drawn=drawn(history.drawn, history.drawn_before),
        stepped=drawn(history.stepped, history.stepped_before),
        windows=measure(spans(counts, history.past.now), spans(counts, history.past.before)),
        steps=measure(spans(counts, history.steps.now), spans(counts, history.steps.before)),
    )


def _thinned(batches: Floats, rows: int, random: np.random.Generator) -> Floats:
    totals = batches.sum(axis=-1)
    if not rows or (totals <= 1.25 * rows).all():
        return batches
    thin: npt.NDArray[np.int64] = random.multinomial(rows, batches / totals[:, None])
    return thin.astype(np.float64)


def family_quantile(columns: list[Floats], false_alarms: float) -> Floats:
    """A limit for each column that all of them together pass in all but few draws.

    Each column is measured in units of its own 90 % quantile, and the limit in these units is the
    quantile of the largest (Westfall and Young 1993, max-statistic).

    Args:
        columns: float64 [draws] each.
        false_alarms: Share of draws in which any column may be above its limit.
    """
    drawn = np.array(columns)
    unit = np.maximum(np.quantile(drawn, 0.9, axis=1), 1e-9)
    worst = (drawn / unit[:, None]).max(axis=0)
    limit: Floats = unit * np.quantile(worst, 1 - false_alarms)
    return limit
