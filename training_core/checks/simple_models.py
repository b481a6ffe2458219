"""What a simple model learns from the very tensors that the network gets: a second witness."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from training_core.checks.flat_features import (
    Table,
    flat_features,
    labels_of_positions,
    position_features,
)
from training_core.examples import Examples
from training_core.task import Kind

Floats = npt.NDArray[np.float64]

ROWS = 4000  # fitted on, and scored: enough to see a hundredth of the prior's loss
_LABELS = 6  # of a multi-label task that are looked at
_TREES = "gradient boosting"
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
    """Return the gain of the best of `simple_losses`.

    Args:
        kind: Of the task.
        train: In any order.
        test: Held back.
    """
    losses, prior = simple_losses(kind, train, test)
    prior_loss = float(prior.mean()) if len(prior) else 0.0
    if not losses or prior_loss <= 0:
        return Gain(0.0, math.inf, 0)
    gains = [prior - loss for loss in losses.values()]
    measured = [
        Gain(
            float(gain.mean()) / prior_loss,
            float(gain.std()) / math.sqrt(len(gain)) / prior_loss,
            len(gain),
        )
        for gain in gains
    ]
    return max(measured, key=lambda gain: gain.lower)


def simple_losses(kind: Kind, train: Examples, test: Examples) -> tuple[dict[str, Floats], Floats]:
    """Fit linear models and small trees; return what they and the average lose, float [N].

    Log loss, and squared error in units of the train rows' deviation, whatever the task's own; of
    several labels summed. N is the number of held-back rows, of sequences of their positions; of
    both, and of train rows, no more than 4,000 are taken. Empty where all labels are the same.
    """
    train, test = train.take(slice(0, ROWS)), test.take(slice(0, ROWS))
    tables = position_features if kind == "sequence" else flat_features
    features, held_back = (table[:ROWS] for table in tables(train, test))
    losses: dict[str, list[Floats]] = {}
    priors: list[Floats] = []
    for _, known, truth in _labels(kind, train, test):
        priors.append(_prior(kind, known, truth))
        for name, model in _models(kind, known).items():
            loss = _fitted_loss(kind, model, (features, known), (held_back, truth))
            losses.setdefault(name, []).append(loss)
    summed = {name: np.sum(parts, axis=0) for name, parts in losses.items()}
    return summed, np.sum(priors, axis=0) if priors else np.zeros(0)


def is_linear(name: str) -> bool:
    """Say whether a model of `simple_losses` is linear in what it gets."""
    return name != _TREES


def prediction_losses(kind: Kind, predictions: Floats, train: Examples, test: Examples) -> Floats:
    """Return what a task's predictions lose, as `simple_losses` counts it; float [N].

    Args:
        kind: Of the task; not a sequence.
        predictions: Of `test`, as `Task.predict` gives them.
        train: The rows of which the simple models know.
        test: Held back.
    """
    parts = []
    for label, known, truth in _labels(kind, train, test):
        if kind == "regression":
            target = train.target.numpy()
            scaled = (predictions - target.mean()) / (target.std() or 1.0)
            parts.append(np.asarray((truth - scaled) ** 2, dtype=np.float64))
            continue
        if kind == "multiclass":
            chosen = predictions[np.arange(len(truth)), truth]
        else:
            yes = predictions.reshape(len(truth), -1)[:, label]
            chosen = np.where(truth == 1, yes, 1 - yes)
        parts.append(_log_loss(chosen, rows=len(known)))
    return np.asarray(np.sum(parts, axis=0), dtype=np.float64)


def _labels(
    kind: Kind, train: Examples, test: Examples
) -> Iterator[tuple[int, npt.NDArray[Any], npt.NDArray[Any]]]:
    """Yield the number of a label, what train rows have, and what is scored.

    Several times where there are several labels; none of which all train rows have the same.
    """
    known, truth = train.target.numpy(), test.target.numpy()
    if kind == "sequence":
        known, truth = (labels[:ROWS] for labels in labels_of_positions(train, test))
    elif kind == "regression":
        mean, deviation = known.mean(), known.std() or 1.0
        known, truth = (known - mean) / deviation, (truth - mean) / deviation
    elif kind != "multiclass":
        flat, flat_truth = (each.reshape(len(each), -1) >= 0.5 for each in (known, truth))
        for label in range(min(_LABELS, flat.shape[1])):
            if len(np.unique(flat[:, label])) > 1:
                yield label, flat[:, label].astype(int), flat_truth[:, label].astype(int)
        return
    if len(np.unique(known)) > 1:
        yield 0, known, truth


def _prior(kind: Kind, known: npt.NDArray[Any], truth: npt.NDArray[Any]) -> Floats:
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
        return {
            "ridge regression": ridge,
            _TREES: HistGradientBoostingRegressor(**small),
        }
    models: dict[str, Any] = {
        f"logistic regression, C {c:g}": LogisticRegression(C=c, max_iter=60, tol=1e-2)
        for c in (0.001, 0.05)
    }
    if len(np.unique(known)) <= _CLASSES_OF_TREES:
        models[_TREES] = HistGradientBoostingClassifier(**small)
    return models


def _fitted_loss(
    kind: Kind,
    model: Any,
    train: tuple[Table, npt.NDArray[Any]],
    test: tuple[Table, npt.NDArray[Any]],
) -> Floats:
    """Return each held-back row's loss."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged is no news to us
        model.fit(*train)
        if kind == "regression":
            return np.asarray((test[1] - model.predict(test[0])) ** 2, dtype=np.float64)
        probabilities = model.predict_proba(test[0])
    place = {label: i for i, label in enumerate(model.classes_.tolist())}
    chosen = [
        row[place[label]] if label in place else 0.0
        for row, label in zip(probabilities, test[1].tolist(), strict=True)
    ]
    return _log_loss(np.array(chosen), rows=len(train[1]))


def _log_loss(chosen: Floats, *, rows: int) -> Floats:
    """Return the log loss of the probability that the label was given: of so many rows at least
    half a row's share, for no model can know of less."""
    return np.asarray(-np.log(np.clip(chosen, 0.5 / rows, 1.0)), dtype=np.float64)
