"""Metrics with a well-known name, taken once more in plain numpy from the predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from training_core.checks.loss.by_itself import Broken
from training_core.examples import Examples
from training_core.task import PADDING, Kind, Task

Numbers = npt.NDArray[np.float64]


def metrics_say_what_they_are_called(
    task: Task, outputs: Tensor, examples: Examples
) -> Broken | None:
    """Metrics agree with the predictions: log_loss, brier, error, squared and absolute error.

    Args:
        task: Gives both.
        outputs: Of a network; noise is added, so that right and wrong are there, and no ties.
        examples: As many.
    """
    target = examples.target
    noise = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(0))
    outputs = outputs + noise * (1.0 if task.kind == "regression" else 3.0)
    with torch.no_grad():
        metrics = task.metrics(outputs, target)
        predicted = task.predict(outputs).double().numpy()
        loss = task.loss(outputs, target).double().numpy()
    plain = _plain(task.kind, predicted, target.numpy())
    for name, expected in plain.items():
        if name not in metrics:
            continue
        got = metrics[name].double().numpy()
        if np.allclose(got, expected, rtol=1e-2, atol=1e-3 * (1e-9 + np.abs(expected).max())):
            continue
        means = f"{got.mean():.4g}, and {expected.mean():.4g} when taken from the predictions"
        said: dict[str, Any] = {"measured": float(got.mean()), "limit": float(expected.mean())}
        if name == "error":
            return _wrong_error(task.kind, got, expected, predicted, means, said)
        if np.allclose(got, loss, rtol=1e-3, atol=1e-6):
            return Broken(
                verdict="warn",
                message=f"the metric {name} is the task's own loss: {means}",
                advice=f"override metrics so that {name} is what others call so",
                **said,
            )
        return Broken(
            verdict="warn" if _proportional(got, expected) else "fail",
            message=f"the metric {name} is not what its name says: its mean is {means}",
            advice=f"take {name} from predict(outputs), or give the metric another name",
            **said,
        )
    return None


def _wrong_error(
    kind: Kind,
    got: Numbers,
    expected: Numbers,
    predicted: Numbers,
    means: str,
    said: dict[str, Any],
) -> Broken:
    """An error that counts what is right is broken; one of another threshold may be meant."""
    wrong_way = kind != "sequence" and np.allclose(got, 1 - expected, atol=1e-6)
    if wrong_way:
        return Broken(
            message=f"the metric error counts what is right: its mean is {means}",
            advice="count what is wrong, or call it accuracy",
            **said,
        )
    if kind == "binary" and set(np.unique(got)) <= {0.0, 1.0}:
        called = np.where(predicted >= 0.5, got == expected, got != expected)  # called 1, for all
        both = called.any() and not called.all()
        if both and predicted[called].min() >= predicted[~called].max():
            return Broken(
                verdict="warn",
                message="the metric error has another threshold than a probability of 0.5: its "
                f"mean is {means}",
                advice="call it by its threshold",
                **said,
            )
    return Broken(
        verdict="warn" if kind in ("multilabel", "sequence") else "fail",
        message=f"the metric error is not what the predictions say: its mean is {means}",
        advice="take error from predict(outputs)",
        **said,
    )


def _proportional(got: Numbers, expected: Numbers) -> bool:
    """Are they the same in another unit?"""
    factor = float((got * expected).sum() / max(1e-30, float((expected**2).sum())))
    return factor > 0 and np.allclose(got, factor * expected, rtol=1e-2, atol=1e-6 * factor)


def _plain(kind: Kind, predicted: Numbers, target: npt.NDArray[Any]) -> dict[str, Numbers]:
    if kind == "regression":
        difference = predicted.reshape(target.shape) - target.astype(np.float64)
        return {"squared_error": difference**2, "absolute_error": np.abs(difference)}
    sure = np.clip(predicted, 1e-12, 1.0)
    if kind in ("binary", "multilabel"):
        truth = target.astype(np.float64)
        unsure = np.clip(1 - predicted, 1e-12, 1.0)
        log_loss = -(truth * np.log(sure) + (1 - truth) * np.log(unsure))
        error = ((predicted >= 0.5) != (truth >= 0.5)).astype(np.float64)
        if kind == "multilabel":
            return {"log_loss": log_loss.mean(1), "error": error.mean(1)}
        return {"log_loss": log_loss, "brier": (predicted - truth) ** 2, "error": error}
    real = target != PADDING if kind == "sequence" else np.ones(target.shape, dtype=bool)
    index = np.where(real, target, 0)[..., None]
    log_loss = np.where(real, -np.log(np.take_along_axis(sure, index, -1)[..., 0]), 0.0)
    error = np.where(real, predicted.argmax(-1) != target, False).astype(np.float64)
    if kind == "sequence":
        return {"log_loss": log_loss.sum(1), "error": error.sum(1)}
    return {"log_loss": log_loss, "error": error}
