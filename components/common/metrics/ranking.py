"""AUC and average precision: exact from sorted rows, drawn from counts by bins of the score."""

from __future__ import annotations

import numpy as np

from components.common.metrics.contract import Family, Floats, Rows, Truth
from components.common.resampling import Draws

# Rows of a bin count as ties. With this many bins of equally many rows the draws move around their
# own point by less than a thousandth of their spread; the point itself is exact.
BINS = 256


class Ranking(Family):
    """How well a score puts yes above no.

    Args:
        truth: bool [N].
        scores: float64 [N].
    """

    def __init__(self, truth: Truth, scores: Floats) -> None:
        self.truth, self.scores = truth, scores
        self.order = np.argsort(scores, kind="stable")
        edges = np.unique(np.quantile(scores, np.linspace(0, 1, BINS + 1)[1:-1]))
        self.bins = np.searchsorted(edges, scores, side="right")
        self.count = len(edges) + 1

    def totals(self, draws: Draws, rows: Rows | None = None) -> Floats:
        taken = slice(None) if rows is None else rows
        places = draws.codes[taken] * self.count + self.bins[taken]
        yes = self.truth[taken]
        size = draws.count * self.count
        both = [np.bincount(places[which], minlength=size) for which in (~yes, yes)]
        return np.concatenate(
            [each.reshape(draws.count, self.count) for each in both], axis=1
        ).astype(np.float64)

    def values(self, totals: Floats) -> dict[str, Floats]:
        return _curves(totals[..., : self.count], totals[..., self.count :])

    def exact(self, rows: Rows | None = None) -> dict[str, float]:
        order = self.order
        if rows is not None:  # sorted once: a part is in the order of the whole
            inside = np.zeros(len(self.truth), dtype=bool)
            inside[rows] = True
            order = order[inside[order]]
        scores, yes = self.scores[order], self.truth[order]
        if len(yes) == 0:
            return {"auc": np.nan, "average_precision": np.nan}
        starts = np.flatnonzero(np.r_[True, scores[1:] != scores[:-1]])  # ties are one bin
        each = [np.add.reduceat(side.astype(np.float64), starts) for side in (~yes, yes)]
        return {name: float(value) for name, value in _curves(*each).items()}


def _curves(no: Floats, yes: Floats) -> dict[str, Floats]:
    """Both metrics from counts by rising score, each [..., bins].

    AUC is the share of pairs in their right order, ties for half. Average precision is the mean
    precision over the yes, as scikit-learn's `average_precision_score` has it.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        below = np.cumsum(no, axis=-1) - no
        pairs = no.sum(axis=-1) * yes.sum(axis=-1)
        auc = (yes * (below + no / 2)).sum(axis=-1) / np.where(pairs > 0, pairs, np.nan)
        hits = np.cumsum(yes[..., ::-1], axis=-1)
        named = hits + np.cumsum(no[..., ::-1], axis=-1)
        precision = np.where(named > 0, hits / np.maximum(named, 1), 0.0)
        total = yes.sum(axis=-1)
        average = (yes[..., ::-1] * precision).sum(axis=-1) / np.where(total > 0, total, np.nan)
    return {"auc": auc, "average_precision": average}
