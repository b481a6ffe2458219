"""Means of row scores, and what is made of sums: accuracy, F1, RMSE, R², perplexity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from components.common.metrics.contract import Family, Floats, Rows, Truth
from components.common.metrics.rows import row_scores, units_of
from components.common.resampling import Draws

if TYPE_CHECKING:
    from training_core.task import Kind

MOST_CLASSES = 200  # of a macro F1: each needs three sums


class Means(Family):
    """Facts are columns of N numbers: units, the row scores, and a few sums more.

    Args:
        kind: Of the task.
        truth, predictions: As `rows.py` says.
    """

    def __init__(self, kind: Kind, truth: Truth, predictions: Floats) -> None:
        scores = row_scores(truth, predictions, kind=kind)
        self.kind = kind
        self.names = list(scores)
        self.columns = [units_of(truth, kind), *scores.values()]
        if kind == "regression":
            centred = truth.astype(np.float64) - float(truth.mean())  # no large squares to subtract
            self.columns += [centred, centred**2]
        self._was, self._said, self._classes = _classes(kind, truth, predictions)

    def totals(self, draws: Draws, rows: Rows | None = None) -> Floats:
        codes = draws.codes if rows is None else draws.codes[rows]
        return self._sums(codes, draws.count, rows)

    def exact(self, rows: Rows | None = None) -> dict[str, float]:
        count = len(self.columns[0]) if rows is None else len(rows)
        summed = self._sums(np.zeros(count, dtype=np.int64), 1, rows)[0]
        return {name: float(value) for name, value in self.values(summed).items()}

    def values(self, totals: Floats) -> dict[str, Floats]:
        count = len(self.names)
        with np.errstate(divide="ignore", invalid="ignore"):
            units = totals[..., 0]
            found = {n: totals[..., 1 + i] / units for i, n in enumerate(self.names)}
            if "error" in found:
                found["accuracy"] = 1 - found["error"]
            if self.kind == "sequence":
                found["perplexity"] = np.exp(found["log_loss"])
            if self.kind == "regression":
                total, squares = totals[..., 1 + count], totals[..., 2 + count]
                spread = squares - total**2 / units
                found["rmse"] = np.sqrt(found["squared_error"])
                found["r2"] = 1 - totals[..., 1] / np.where(spread > 0, spread, np.nan)
            if self._classes:
                both, said, was = np.split(totals[..., 1 + count :], 3, axis=-1)
                if self.kind == "binary":  # of yes alone
                    both, said, was = both[..., 1:], said[..., 1:], was[..., 1:]
                    found["precision"] = (both / said)[..., 0]
                    found["recall"] = (both / was)[..., 0]
                there = said + was > 0  # a class that nobody named and none was has no F1
                each = np.where(there, 2 * both / np.where(there, said + was, 1.0), 0.0)
                found["f1"] = each.sum(axis=-1) / there.sum(axis=-1)
        return found

    def _sums(self, codes: npt.NDArray[np.int64], count: int, rows: Rows | None) -> Floats:
        taken = slice(None) if rows is None else rows
        columns = [np.bincount(codes, weights=c[taken], minlength=count) for c in self.columns]
        found: list[Floats] = [np.stack(columns, axis=1)]
        if self._classes:
            was, said = self._was[taken], self._said[taken]
            found += [self._counts(codes, count, *pair) for pair in _pairs(was, said)]
        return np.concatenate(found, axis=1)

    def _counts(
        self, codes: npt.NDArray[np.int64], count: int, classes: Truth, which: Truth | None
    ) -> Floats:
        """Count rows by cluster and class, float64 [clusters, classes]; some of the rows or all."""
        if classes.ndim == 2:  # several labels: those that are yes
            yes = classes if which is None else classes & which
            columns = [np.bincount(codes, weights=c, minlength=count) for c in yes.T]
            return np.stack(columns, axis=1)
        places = codes * self._classes + classes
        if which is not None:
            places = places[which]
        counted = np.bincount(places, minlength=count * self._classes)
        return counted.reshape(count, self._classes).astype(np.float64)


def _pairs(was: Truth, said: Truth) -> list[tuple[Truth, Truth | None]]:
    """What is counted: both agree; what was said; what was."""
    agree = said if was.ndim == 2 else was == said
    return [(was, agree), (said, None), (was, None)]


def _classes(kind: Kind, truth: Truth, predictions: Floats) -> tuple[Truth, Truth, int]:
    """Return the class of each row, [N], or which labels are yes, [N, K]; the same as it was said.

    And how many classes there are; 0: the kind has none, or too many.
    """
    none = np.zeros(0, dtype=np.int64)
    if kind == "binary":
        return (truth >= 0.5).astype(np.int64), (predictions >= 0.5).astype(np.int64), 2
    if kind == "multilabel" and truth.shape[1] <= MOST_CLASSES:
        return truth >= 0.5, predictions >= 0.5, truth.shape[1]
    if kind == "multiclass" and predictions.shape[1] <= MOST_CLASSES:
        return truth.astype(np.int64), predictions.argmax(1), predictions.shape[1]
    return none, none, 0
