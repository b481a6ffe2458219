"""Means of row scores, and what is made of sums: accuracy, F1, RMSE, R², perplexity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from components.common.metrics.contract import Family, Floats, Rows, Truth
from components.common.metrics.rows import row_scores, units_of
from components.common.resampling import Draws

if TYPE_CHECKING:
    from training_core.task import Kind

MOST_CLASSES = 200  # of a macro F1: each needs three sums


class Means(Family):
    """Facts are [N, F]: units, the row scores, and a few sums more.

    Args:
        kind: Of the task.
        truth, predictions: As `rows.py` says.
    """

    def __init__(self, kind: Kind, truth: Truth, predictions: Floats) -> None:
        scores = row_scores(truth, predictions, kind=kind)
        self.kind = kind
        self.names = list(scores)
        self.facts = np.stack([units_of(truth, kind), *scores.values()], axis=1)
        if kind == "regression":
            centred = truth.astype(np.float64) - float(truth.mean())  # no large squares to subtract
            self.facts = np.column_stack([self.facts, centred, centred**2])
        self._yes, self._said = _classes(kind, truth, predictions)

    def totals(self, draws: Draws, rows: Rows | None = None) -> Floats:
        return np.concatenate([draws.totals(block, rows) for block in self._blocks(rows)], axis=1)

    def exact(self, rows: Rows | None = None) -> dict[str, float]:
        summed = np.concatenate([block.sum(axis=0) for block in self._blocks(rows)])
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
            if self._yes is not None:
                both, said, true = np.split(totals[..., 1 + count :], 3, axis=-1)
                there = said + true > 0  # a class that nobody named and none was has no F1
                each = np.where(there, 2 * both / np.where(there, said + true, 1.0), 0.0)
                found["f1"] = each.sum(axis=-1) / there.sum(axis=-1)
        return found

    def _blocks(self, rows: Rows | None) -> list[Floats]:
        taken = slice(None) if rows is None else rows
        facts = self.facts[taken]
        if self._yes is None or self._said is None:
            return [facts]
        yes, said = self._yes[taken], self._said[taken]
        return [facts, (yes & said).astype(np.float64), said, yes]


def _classes(kind: Kind, truth: Truth, predictions: Floats) -> tuple[Truth | None, Truth | None]:
    """Return for each class which rows are of it, and which are said to be: bool [N, K]."""
    if kind in ("binary", "multilabel"):
        shaped = (truth >= 0.5).reshape(len(truth), -1)
        said = (predictions >= 0.5).reshape(len(truth), -1)
    elif kind == "multiclass":
        classes = np.arange(predictions.shape[1])
        if len(classes) > MOST_CLASSES:
            return None, None
        shaped = truth[:, None] == classes
        said = predictions.argmax(1)[:, None] == classes
    else:
        return None, None
    return (shaped, said) if shaped.shape[1] <= MOST_CLASSES else (None, None)
