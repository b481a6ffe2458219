"""What a simple model learns from the very tensors that the network gets: a second witness."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from training_core.checks.loss.flat_features import (
    Table,
    flat_features,
    labels_of_positions,
    position_features,
)
from training_core.examples import Examples
from training_core.task import Kind

_ROWS = 4000  # fitted on, and scored: enough to see a hundredth of the prior's loss
_LABELS = 6  # of a multi-label task that are looked at
_CLASSES_OF_TREES = 10  # of more classes trees take too long


@dataclass(frozen=True)
class Gain:
    """What is won over the prior on held-back rows.

    Attributes:
        share: Of the prior's loss.
        error: Its standard error.
        rows: Held-back rows it is taken of.
    """

    share: float
    error: float
    rows: int

    @property
    def lower(self) -> float:
        """Three standard errors below, for it is the best of several models."""
        return self.share - 3 * self.error

    @property
    def upper(self) -> float:
        """Two standard errors above."""
        return self.share + 2 * self.error


def simple_gain(kind: Kind, train: Examples, test: Examples) -> Gain:
    """Fit linear models and small trees; return the gain of the best.

    Its losses are log loss and squared error, whatever the task's own.

    Args:
        kind: Of the task.
        train: In any order.
        test: Held back.
    """
    train, test = train.take(slice(0, _ROWS)), test.take(slice(0, _ROWS))
    tables = position_features if kind == "sequence" else flat_features
    features, held_back = tables(train, test)
    if not features.shape[1]:
        return Gain(0.0, 0.0, len(test))  # constants alone: nothing can be learned from them
    gains: dict[str, list[npt.NDArray[np.float64]]] = {}
    prior_loss = 0.0
    for known, truth in _labels(kind, train, test):
        known, truth, x = known[:_ROWS], truth[:_ROWS], features[:_ROWS]
        if len(np.unique(known)) < 2:
            continue
        prior = _prior(kind, known, truth)
        prior_loss += float(prior.mean())
        for name, model in _models(kind, known).items():
            loss = _fitted_loss(kind, model, (x, known), (held_back[:_ROWS], truth))
            gains.setdefault(name, []).append(prior - loss)
    candidates = [np.sum(parts, axis=0) for parts in gains.values()]
    if not candidates or prior_loss <= 0:
        return Gain(0.0, math.inf, 0)
    measured = [
        Gain(
            float(gain.mean()) / prior_loss,
            float(gain.std()) / math.sqrt(len(gain)) / prior_loss,
            len(gain),
        )
        for gain in candidates
    ]
    return max(measured, key=lambda gain: gain.lower)


def _labels(
    kind: Kind, train: Examples, test: Examples
) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """Yield labels to fit and labels to score; several times where there are several."""
    if kind == "sequence":
        known, truth = labels_of_positions(train, test)
        yield known, truth
        return
    known, truth = train.target.numpy(), test.target.numpy()
    if kind == "regression":
        mean, deviation = known.mean(), known.std() or 1.0
        yield (known - mean) / deviation, (truth - mean) / deviation
    elif kind == "multiclass":
        yield known, truth
    else:
        flat, flat_truth = known.reshape(len(known), -1), truth.reshape(len(truth), -1)
        for i in range(min(_LABELS, flat.shape[1])):
            yield (flat[:, i] >= 0.5).astype(int), (flat_truth[:, i] >= 0.5).astype(int)


def _prior(kind: Kind, known: npt.NDArray[Any], truth: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return each held-back row's loss of the average."""
    if kind == "regression":
        return np.asarray(truth, dtype=np.float64) ** 2
    classes, counts = np.unique(known, return_counts=True)
    shares = dict(zip(classes.tolist(), counts / counts.sum(), strict=True))
    found = [shares.get(label, 0.5 / len(known)) for label in truth.tolist()]
    return np.asarray(-np.log(np.array(found)), dtype=np.float64)


def _models(kind: Kind, known: npt.NDArray[Any]) -> dict[str, Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression, RidgeCV

    small: dict[str, Any] = {
        "max_iter": 40,
        "max_depth": 3,
        "min_samples_leaf": max(3, len(known) // 50),
        "early_stopping": False,
        "random_state": 0,
    }
    if kind == "regression":
        ridge = RidgeCV(alphas=np.logspace(0, 4, 5))
        return {"ridge": ridge, "trees": HistGradientBoostingRegressor(**small)}
    models: dict[str, Any] = {
        f"logistic, C {c:g}": LogisticRegression(C=c, max_iter=60, tol=1e-2) for c in (0.001, 0.05)
    }
    if len(np.unique(known)) <= _CLASSES_OF_TREES:
        models["trees"] = HistGradientBoostingClassifier(**small)
    return models


def _fitted_loss(
    kind: Kind,
    model: Any,
    train: tuple[Table, npt.NDArray[Any]],
    test: tuple[Table, npt.NDArray[Any]],
) -> npt.NDArray[np.float64]:
    """Return each held-back row's loss."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged is no news to us
        model.fit(*train)
        if kind == "regression":
            return np.asarray((test[1] - model.predict(test[0])) ** 2, dtype=np.float64)
        probabilities = model.predict_proba(test[0])
    place = {label: i for i, label in enumerate(model.classes_.tolist())}
    unknown = 0.5 / len(train[1])
    chosen = [
        row[place[label]] if label in place else unknown
        for row, label in zip(probabilities, test[1].tolist(), strict=True)
    ]
    return -np.log(np.clip(np.array(chosen, dtype=np.float64), unknown / 10, 1.0))
