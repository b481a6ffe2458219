"""The first steps of the short training that all checks share, as two of them read it."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from training_core.checks.contract import Curve
from training_core.checks.subject import Subject
from training_core.examples import Examples


@dataclass(frozen=True)
class Watched:
    """The first steps of a short training as planned.

    Attributes:
        model: Trained; shared, so not to be changed.
        fixed: At most 32 held-back rows.
        curve: Loss a unit of each step's batch.
        predictions: Of the fixed rows by step, the untrained network's first; float [rows, …].
        updates: By weight matrix, the norm of an update over that of the weights, at some steps.
        gradients: By parameter with a gradient, its norm at the same steps, before clipping.
        norms: Of all gradients together, at the same steps.
    """

    model: nn.Module
    fixed: Examples
    curve: Curve
    predictions: dict[int, Tensor]
    updates: dict[str, list[float]]
    gradients: dict[str, list[float]]
    norms: list[float]


def watched(subject: Subject) -> Watched:
    """Return what was seen of the subject's short training."""
    seen = subject.watched
    return Watched(
        model=seen.model,
        fixed=seen.fixed,
        curve=seen.training.curve[: seen.steps],
        predictions={
            step: subject.task.predict(outputs).detach().double()
            for step, outputs in seen.outputs.items()
        },
        updates=seen.updates,
        gradients=seen.gradients,
        norms=seen.norms,
    )
