"""Predictions whose level and sharpness are put right: what they tell apart is what is left.

A loss may weigh positives, smooth labels or ask for a quantile, and its predictions then are no
shares and no means by intention. Two numbers put that right (Platt 1999; temperature and bias for
several classes, Guo et al. 2017, arXiv:1706.04599), and cannot make up what was not learned.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812

from training_core.task import Kind

Floats = npt.NDArray[np.float64]

_SMALLEST = 1e-7  # probability


def recalibrated(
    kind: Kind, predictions: Floats, target: npt.NDArray[np.generic], others: Floats
) -> Floats:
    """Return predictions of other rows with the slope and the shift that fit labels of some.

    Args:
        kind: Of the task; not a sequence.
        predictions: As `Task.predict` gives them, float64 [N] or [N, K].
        target: Labels of the same rows.
        others: Predictions to put right, float64 [M] or [M, K].
    """
    if kind == "regression":
        flat, truth = predictions.reshape(-1), np.asarray(target, np.float64).reshape(-1)
        spread = float(flat.std())
        if not spread > 0:
            return np.full(others.shape, truth.mean())
        slope = float(((flat - flat.mean()) * (truth - truth.mean())).mean()) / spread**2
        return np.asarray(truth.mean() + slope * (others - flat.mean()), np.float64)
    if kind == "multiclass":
        return _of_classes(predictions, np.asarray(target, np.int64), others)
    labels = (np.asarray(target).reshape(len(predictions), -1) >= 0.5).astype(np.int64)
    columns = zip(*(p.reshape(len(p), -1).T for p in (predictions, others)), strict=True)
    found = [
        _of_classes(_both(some), label, _both(other))[:, 1]
        for (some, other), label in zip(columns, labels.T, strict=True)
    ]
    return np.stack(found, 1).reshape(others.shape)


def _both(yes: Floats) -> Floats:
    return np.stack([1 - yes, yes], 1)


def _of_classes(probabilities: Floats, labels: npt.NDArray[np.int64], others: Floats) -> Floats:
    """Fit one temperature and a bias a class, and apply them; [M, K]."""
    logs, other = (
        torch.from_numpy(np.log(np.clip(each, _SMALLEST, 1.0))) for each in (probabilities, others)
    )
    known = torch.from_numpy(labels)
    scale = torch.ones((), dtype=torch.float64, requires_grad=True)
    shift = torch.zeros(logs.shape[1], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([scale, shift], max_iter=50, line_search_fn="strong_wolfe")

    def loss() -> float:
        optimiser.zero_grad()
        # a little against running off where a label does not occur
        value = F.cross_entropy(scale * logs + shift, known) + 1e-4 * shift.square().mean()
        value.backward()  # type: ignore[no-untyped-call]
        return float(value.detach())

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        return np.asarray((scale * other + shift).softmax(1).numpy(), np.float64)
