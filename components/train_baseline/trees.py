"""Gradient-boosted trees on the network's own inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from components.train_baseline.contract import Baseline, Floats, Ground, Predictions
from components.train_baseline.features import Features
from components.train_baseline.fitting import classifiers, probabilities

_MOST_CATEGORIES = 254  # of a column; scikit-learn bins into 255, and one is kept for the others


class Trees(Baseline):
    """On tables often as good as a network, or better (Grinsztajn et al. 2022, arXiv:2207.08815).

    Neither chance nor the number of threads changes the result: there is no early stop, and the
    sample that bins are taken from, of over 200,000 rows, is always the same.
    """

    name = "trees"

    def why_absent(self, ground: Ground) -> str:
        if not ground.settings.trees:
            return "baselines.trees is false"
        return "" if ground.features.width else "the network has no inputs"

    def fit(self, ground: Ground) -> Predictions:
        from sklearn.ensemble import (
            HistGradientBoostingClassifier,
            HistGradientBoostingRegressor,
        )

        kept = [_frequent(column) for column in ground.features.categories.T]
        given: dict[str, Any] = {
            "max_iter": ground.settings.trees_rounds,
            "learning_rate": ground.settings.trees_lr,
            "categorical_features": list(range(len(kept))),
            "early_stopping": False,
            "random_state": 0,
        }
        train = _matrix(ground.features, kept)
        if ground.task.kind == "regression":
            model = HistGradientBoostingRegressor(**given).fit(train, ground.target)
            return {
                part: model.predict(_matrix(ground.features_of(rows), kept))
                for part, rows in ground.scored.items()
            }
        fitted = classifiers(lambda: HistGradientBoostingClassifier(**given), train, ground)
        return {
            part: probabilities(fitted, _matrix(ground.features_of(rows), kept), ground)
            for part, rows in ground.scored.items()
        }


def _frequent(column: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The categories that get a bin of their own, sorted; of equally frequent ones the smaller."""
    values, counts = np.unique(column, return_counts=True)
    return np.sort(values[np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES]])


def _matrix(features: Features, kept: list[npt.NDArray[np.int64]]) -> Floats:
    """Categories first, as their places among the kept ones; NaN, which is missing, for others."""
    places = np.full(features.categories.shape, np.nan)
    for i, values in enumerate(kept):
        column = features.categories[:, i]
        place = np.searchsorted(values, column).clip(max=len(values) - 1)
        known = values[place] == column
        places[known, i] = place[known]
    return np.hstack([places, features.numbers])
