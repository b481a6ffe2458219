"""One short training, watched: what several checks read, made once for each subject."""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from training_core.checks.contract import Curve
from training_core.checks.dynamics.matrices import weight_matrices
from training_core.checks.short_training import train_briefly
from training_core.checks.subject import Subject
from training_core.evaluation import outputs_of
from training_core.examples import Examples

_STEPS = 150
_INSTANTS = 12
_ROWS = 32

_made: WeakKeyDictionary[Subject, Watched] = WeakKeyDictionary()


@dataclass
class Watched:
    """A short training as planned.

    Attributes:
        model: Trained; shared, so not to be changed.
        curve: Loss a unit of each step's batch.
        fixed: At most 32 held-back rows.
        predictions: Of the fixed rows by step, the untrained network's first; float [rows, …].
        updates: By weight matrix, the norm of an update over that of the weights, at some steps.
        gradients: By parameter with a gradient, its norm at the same steps.
    """

    model: nn.Module
    fixed: Examples
    curve: Curve = field(default_factory=list)
    predictions: dict[int, Tensor] = field(default_factory=dict)
    updates: dict[str, list[float]] = field(default_factory=dict)
    gradients: dict[str, list[float]] = field(default_factory=dict)


def watched(subject: Subject) -> Watched:
    """Return the watched training of a subject; it is made when it is asked for first."""
    if subject not in _made:
        _made[subject] = _watch(subject)
    return _made[subject]


def _watch(subject: Subject) -> Watched:
    steps = min(subject.short_steps, _STEPS)
    instants = {round(steps * i / (_INSTANTS - 1)) for i in range(_INSTANTS)}
    model = subject.build(0)
    seen = Watched(model, subject.held_back.take(slice(0, _ROWS)))
    before: dict[str, Tensor] = {}

    def predict(step: int) -> None:
        outputs = outputs_of(model, seen.fixed, device=subject.device)
        seen.predictions[step] = subject.task.predict(outputs).detach().double()

    def after_backward(step: int, model: nn.Module) -> None:
        if step + 1 in instants:
            before.update({n: p.detach().clone() for n, p in weight_matrices(model).items()})
            for name, parameter in model.named_parameters():
                if parameter.grad is not None:
                    norm = float(parameter.grad.detach().norm())
                    seen.gradients.setdefault(name, []).append(norm)

    @torch.no_grad()
    def after_step(step: int, model: nn.Module) -> None:
        if step + 1 in instants:
            for name, weights in weight_matrices(model).items():
                size, change = float(before[name].norm()), float((weights - before[name]).norm())
                if size > 0:
                    seen.updates.setdefault(name, []).append(change / size)
            with torch.random.fork_rng(devices=()):
                predict(step + 1)

    with torch.random.fork_rng(devices=()):
        predict(0)
    seen.curve = train_briefly(
        subject.task,
        model,
        subject.examples,
        steps=steps,
        batch_size=subject.batch_size,
        training=subject.training,
        after_backward=after_backward,
        after_step=after_step,
    ).curve
    return seen
