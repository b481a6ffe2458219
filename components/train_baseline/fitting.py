"""Classifiers of scikit-learn for each kind of task that predicts probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from components.train_baseline.contract import Floats, Ground


@dataclass(frozen=True)
class Fitted:
    """A classifier of one label.

    Attributes:
        model: None where the train split holds one class alone: there is nothing to learn.
        classes: The classes that it tells apart, int64.
    """

    model: Any
    classes: npt.NDArray[np.int64]


def classifiers(build: Callable[[], Any], train: Any, ground: Ground) -> list[Fitted]:
    """Fit a classifier, or one for each label where there are several."""
    columns = ground.target.reshape(len(ground.target), -1).T
    return [_fitted(build, train, labels) for labels in columns]


def _fitted(build: Callable[[], Any], train: Any, labels: npt.NDArray[Any]) -> Fitted:
    labels = np.rint(labels).astype(np.int64)
    classes = np.unique(labels)
    return Fitted(build().fit(train, labels) if len(classes) > 1 else None, classes)


def probabilities(fitted: list[Fitted], matrix: Any, ground: Ground) -> Floats:
    """Return what is predicted, shaped as the kind of task has it."""
    count = ground.outputs if ground.task.kind == "multiclass" else 2
    each = []
    for one in fitted:
        found = np.zeros((matrix.shape[0], count))  # a class never seen is never predicted
        found[:, one.classes] = 1.0 if one.model is None else one.model.predict_proba(matrix)
        each.append(found)
    if ground.task.kind == "multiclass":
        return each[0]
    return ground.shaped(np.stack([found[:, 1] for found in each], axis=1))
