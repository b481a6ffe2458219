"""Whether probabilities mean what they say: the expected calibration error and its bins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from components.common.metrics.contract import Family, Floats, Rows, Truth
from components.common.resampling import Draws

if TYPE_CHECKING:
    from training_core.task import Kind

BINS = 15


class Calibration(Family):
    """Expected calibration error, in bins of equally many rows.

    The mean over rows of |predicted - observed| of their bin. It is larger than the truth by what
    chance does to each bin, and so are its draws, by as much again: `settled` mirrors them, so
    that the interval puts that right (the basic bootstrap; Davison and Hinkley 1997, section 5.2).

    Args:
        truth: bool [N]: what the probability is of came true.
        probability: float64 [N].
    """

    def __init__(self, truth: Truth, probability: Floats) -> None:
        self.truth, self.probability = truth.astype(np.float64), probability
        edges = np.unique(np.quantile(probability, np.linspace(0, 1, BINS + 1)[1:-1]))
        self.bins = np.searchsorted(edges, probability, side="right")
        self.count = len(edges) + 1

    def totals(self, draws: Draws, rows: Rows | None = None) -> Floats:
        taken = slice(None) if rows is None else rows
        places = draws.codes[taken] * self.count + self.bins[taken]
        size = draws.count * self.count
        said, was, some = (
            np.bincount(places, weights=each, minlength=size).reshape(draws.count, self.count)
            for each in (self.probability[taken], self.truth[taken], np.ones(len(places)))
        )
        return np.concatenate([said, was, some], axis=1)

    def values(self, totals: Floats) -> dict[str, Floats]:
        said, was, some = np.split(totals, 3, axis=-1)
        rows = some.sum(axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return {"calibration_error": np.abs(said - was).sum(axis=-1) / rows}

    def exact(self, rows: Rows | None = None) -> dict[str, float]:
        said, was, some = self._sums(rows)
        found = self.values(np.concatenate([said, was, some]))
        return {name: float(value) for name, value in found.items()}

    def settled(self, values: Floats, *, point: float, coarse: float) -> Floats:
        return np.maximum(2 * point - values, 0.0)

    def table(self) -> list[tuple[float, float, int]]:
        """Return of each bin the mean prediction, the rate of what came true, the rows."""
        said, was, some = self._sums(None)
        return [
            (float(p / n), float(y / n), int(n))
            for p, y, n in zip(said, was, some, strict=True)
            if n
        ]

    def _sums(self, rows: Rows | None) -> tuple[Floats, Floats, Floats]:
        taken = slice(None) if rows is None else rows
        bins, size = self.bins[taken], self.count
        said = np.bincount(bins, weights=self.probability[taken], minlength=size)
        was = np.bincount(bins, weights=self.truth[taken], minlength=size)
        return (
            said.astype(float),
            was.astype(float),
            np.bincount(bins, minlength=size).astype(float),
        )


def calibration_of(kind: Kind, truth: Truth, predictions: Floats) -> Calibration | None:
    """Return the calibration of a kind's probabilities: of yes, of each label, of the named class.

    None: the kind predicts no probabilities, or too many (tokens).
    """
    if kind == "binary":
        return Calibration(truth >= 0.5, predictions.astype(np.float64))
    if kind == "multiclass":
        named = predictions.argmax(1)
        return Calibration(named == truth, predictions.max(axis=1).astype(np.float64))
    return None
