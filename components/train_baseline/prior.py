"""The same answer for every row: what the train split's labels are on average."""

from __future__ import annotations

import numpy as np

from components.train_baseline.contract import ALL_KINDS, Baseline, Floats, Ground, Predictions
from training_core.task import PADDING


class Prior(Baseline):
    """The rate of yes, of each class, of each label, or of each token; the mean of a number."""

    name = "prior"
    kinds = ALL_KINDS

    def fit(self, ground: Ground) -> Predictions:
        prior = prior_of(ground)
        if ground.task.kind == "sequence":
            return {
                part: np.broadcast_to(prior, (*ground.task.target(rows).shape, len(prior)))
                for part, rows in ground.scored.items()
            }
        return {
            part: ground.shaped(np.broadcast_to(prior, (len(rows), len(prior))))
            for part, rows in ground.scored.items()
        }


def prior_of(ground: Ground) -> Floats:
    """Return the mean of each output's labels, float64 [outputs].

    Of classes and tokens with one more of each (Laplace): one that the train split lacks is rare,
    not impossible.
    """
    target = ground.target
    if ground.task.kind in ("multiclass", "sequence"):
        counts = np.bincount(target[target != PADDING], minlength=ground.outputs) + 1
        return np.asarray(counts / counts.sum())
    return np.asarray(target.mean(axis=0, dtype=np.float64)).reshape(-1)
