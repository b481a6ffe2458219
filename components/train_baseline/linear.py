"""A linear model of the network's own inputs: logistic regression for labels, ridge for numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from components.train_baseline.contract import Baseline, Floats, Ground, Predictions
from components.train_baseline.features import Features
from components.train_baseline.fitting import classifiers, probabilities

_ITERATIONS = 300
_TOLERANCE = 1e-3


class Linear(Baseline):
    """Categories one-hot, numbers divided by their deviation, weights drawn towards zero."""

    name = "linear"

    def why_absent(self, ground: Ground) -> str:
        if not ground.settings.linear:
            return "baselines.linear is false"
        return "" if ground.features.width else "the network has no inputs"

    def fit(self, ground: Ground) -> Predictions:
        from sklearn.linear_model import LogisticRegression, Ridge

        matrix = _Matrix(ground.features)
        if ground.task.kind == "regression":
            ridge = Ridge(solver="sparse_cg").fit(matrix.train, ground.target.astype(np.float64))
            return {
                part: ridge.predict(matrix.of(ground.features_of(rows)))
                for part, rows in ground.scored.items()
            }
        fitted = classifiers(
            lambda: LogisticRegression(max_iter=_ITERATIONS, tol=_TOLERANCE), matrix.train, ground
        )
        return {
            part: probabilities(fitted, matrix.of(ground.features_of(rows)), ground)
            for part, rows in ground.scored.items()
        }


class _Matrix:
    """Sparse columns, as the train split has taught them: its categories, its deviations."""

    def __init__(self, train: Features) -> None:
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        self.encoder = OneHotEncoder(handle_unknown="ignore")
        self.scaler = StandardScaler(with_mean=False)  # with its mean it would not be sparse
        if train.categories.shape[1]:
            self.encoder.fit(train.categories)
        if train.numbers.shape[1]:
            self.scaler.fit(_finite(train))
        self.train = self.of(train)

    def of(self, features: Features) -> Any:
        from scipy.sparse import csr_matrix, hstack

        columns = []
        if features.categories.shape[1]:
            columns.append(self.encoder.transform(features.categories))
        if features.numbers.shape[1]:
            columns.append(csr_matrix(self.scaler.transform(_finite(features))))
        return hstack(columns).tocsr()


def _finite(features: Features) -> Floats:
    """What a network would have to make of a number that is none: nothing."""
    return np.nan_to_num(features.numbers.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
