"""Does a simple model get more out of the same tensors than the network?"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from training_core.checks.contract import Check, Finding, NotApplicable
from training_core.checks.subject import Subject
from training_core.evaluation import outputs_of
from training_core.examples import Examples

_MOST_FEATURES = 1000
_ROWS, _HELD_BACK = 4000, 2000
_BOOSTED = 500  # rows from which on trees are worth a try
_EPOCHS, _MOST_STEPS = 10, 600
_BEYOND_NOISE = 3.0  # standard errors of the paired difference
_RELEVANT = 0.1  # of the network's loss
_NOTABLE = 0.05  # of what predicting the average loses
_DISTINCT = 32  # whole numbers of no more values are read as categories
Floats = npt.NDArray[np.float64]


class SimpleModelAhead(Check):
    """Fits scikit-learn's models to what the network gets, on no more rows than it has."""

    name = "simple_model_ahead"
    looks_at = "no simple model on the same tensors is clearly ahead of the briefly trained network"
    costs = "training"

    def look(self, subject: Subject) -> Finding:
        kind = subject.task.kind
        if kind == "sequence":
            raise NotApplicable("simple models of scikit-learn do not predict sequences")
        train, held = subject.batch(_ROWS, seed=9), subject.held_back.take(slice(0, _HELD_BACK))
        inputs, test = _flat(train, held)
        if inputs.shape[1] > _MOST_FEATURES:
            raise NotApplicable(
                f"{inputs.shape[1]} inputs are too many for a simple model ({_MOST_FEATURES})"
            )
        if len(held) < 20 or len(train) < 40:
            raise NotApplicable("there are too few rows to compare models on")
        network = self._network(subject, held)
        if network is None:
            raise NotApplicable("predictions do not have the shape that this kind of task has")
        losses = {
            name: _losses(kind, prediction, held.target.numpy())
            for name, prediction in _simple(kind, inputs, train.target.numpy(), test).items()
        }
        if not losses:
            raise NotApplicable("the labels of the sample are all the same")
        own = _losses(kind, network, held.target.numpy())
        table: list[dict[str, str | float]] = [
            {"model": name, "held-back loss": float(loss.mean())}
            for name, loss in {"the network": own, **losses}.items()
        ]
        best = min(losses, key=lambda name: float(losses[name].mean()))
        gain = own - losses[best]
        error = float(gain.std(ddof=1)) / math.sqrt(len(gain))
        ahead, limit = float(gain.mean()), _BEYOND_NOISE * error
        prior = float(_losses(kind, _average(kind, train, len(held)), held.target.numpy()).mean())
        words = (
            f"on {len(held)} held-back rows the network loses {own.mean():.4g} after a short "
            f"training, {best} on the same tensors {losses[best].mean():.4g}"
        )
        said = {"measured": ahead, "limit": limit, "table": table}
        if ahead > limit and ahead > max(_RELEVANT * float(own.mean()), _NOTABLE * prior):
            return self.warned(
                words,
                advice="see whether the network drops inputs or spoils their scale, learns too "
                "slowly or is too small; or whether it needs longer than this",
                **said,
            )
        return self.passed(words, **said)

    @staticmethod
    def _network(subject: Subject, held: Examples) -> Floats | None:
        """Train for some epochs, as far as that is short; None: predictions of another shape."""
        epochs = _EPOCHS * len(subject.examples) // subject.batch_size
        steps = max(subject.settings.input_steps, min(epochs, _MOST_STEPS))
        model = (
            subject.train_briefly(subject.examples, steps=steps).model
            if steps > subject.settings.input_steps
            else subject.trained.model
        )
        outputs = outputs_of(model, held, device=subject.device)
        prediction = subject.task.predict(outputs).double().numpy()
        rows = (len(held),)
        fits = (
            prediction.ndim == 2
            if subject.task.kind == "multiclass"
            else (prediction.shape == (held.target.shape if prediction.ndim > 1 else rows))
        )
        return prediction if fits and np.isfinite(prediction).all() else None


def _average(kind: str, train: Examples, rows: int) -> Floats:
    """Return the prediction that is right on average, for so many rows."""
    target = train.target
    if kind == "multiclass":
        rates = torch.bincount(target).double() / len(target)
    else:
        rates = target.double().mean(0)
    return rates.expand(rows, *rates.shape).numpy()


def _flat(train: Examples, held: Examples) -> tuple[Floats, Floats]:
    """Return standardised numbers, and 0 or 1 for each value of a category, [N, features]."""
    columns: list[tuple[Floats, Floats]] = []
    for name, array in train.arrays.items():
        other = held.arrays[name].reshape(len(held), -1)
        array = array.reshape(len(array), -1)
        if array.shape[1] > _MOST_FEATURES:
            return np.zeros((len(train), array.shape[1])), np.zeros((len(held), 0))
        for one, two in zip(array.T, other.T, strict=True):
            columns.append(_column(one, two))
    fit, test = (np.concatenate(side, axis=1) for side in zip(*columns, strict=True))
    return fit, test


def _column(train: torch.Tensor, held: torch.Tensor) -> tuple[Floats, Floats]:
    one, two = train.double().numpy(), held.double().numpy()
    values = np.unique(one)
    if not train.is_floating_point() and 2 < len(values) <= _DISTINCT:
        return (one[:, None] == values) * 1.0, (two[:, None] == values) * 1.0
    mean, deviation = float(one.mean()), float(one.std()) or 1.0
    scaled = ((side - mean) / deviation for side in (one, two))
    fit, test = (np.clip(np.nan_to_num(side), -8, 8)[:, None] for side in scaled)
    return fit, test


def _simple(kind: str, inputs: Floats, target: Any, test: Floats) -> dict[str, Floats]:
    """Return predictions of each simple model that can be fitted, by its name."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression, Ridge

    boosting = {"max_iter": 60, "max_leaf_nodes": 15, "early_stopping": False, "random_state": 0}
    regression = kind == "regression"
    models: dict[str, Any] = (
        {"ridge regression": Ridge()}
        if regression
        else {"logistic regression": LogisticRegression(max_iter=200)}
    )
    if len(inputs) >= _BOOSTED:
        trees = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
        models["gradient boosting"] = trees(**boosting)
    predictions: dict[str, Floats] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not converged: it is a lower bound of what is possible
        for name, model in models.items():
            columns = target.T if kind == "multilabel" else [target]
            found = [_fitted(kind, model, inputs, column, test) for column in columns]
            if len(fitted := [f for f in found if f is not None]) == len(found):
                joined = np.stack(fitted, axis=1) if kind == "multilabel" else fitted[0]
                predictions[name] = joined
    return predictions


def _fitted(kind: str, model: Any, inputs: Floats, target: Any, test: Floats) -> Floats | None:
    if kind == "regression":
        mean, deviation = float(target.mean()), float(target.std()) or 1.0
        fitted = model.fit(inputs, (target - mean) / deviation)
        return np.asarray(fitted.predict(test)) * deviation + mean
    labels = target if kind == "multiclass" else target >= 0.5
    if len(np.unique(labels)) < 2:
        return None
    fitted = model.fit(inputs, labels)
    probability = np.asarray(fitted.predict_proba(test))
    if kind != "multiclass":
        return probability[:, 1]
    full = np.zeros((len(test), int(max(fitted.classes_)) + 1))
    full[:, fitted.classes_] = probability
    return full


def _losses(kind: str, prediction: Floats, target: Any) -> Floats:
    """Return the squared error or the log loss of each row, float [N]."""
    if kind == "regression":
        return np.asarray(np.square(prediction - target), dtype=np.float64)
    if kind == "multiclass":
        known = target < prediction.shape[1]
        right = prediction[np.arange(len(target)), np.where(known, target, 0)] * known
        return np.asarray(-np.log(np.clip(right, 1e-4, 1.0)))
    probability = np.clip(prediction, 1e-4, 1 - 1e-4)
    losses = -np.where(target >= 0.5, np.log(probability), np.log1p(-probability))
    return np.asarray(losses.reshape(len(losses), -1).mean(1))
