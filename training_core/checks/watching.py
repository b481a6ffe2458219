"""What is noted down while a network is trained briefly: one training serves several checks."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from training_core.checks.matrices import weight_matrices
from training_core.checks.short_training import ShortTraining
from training_core.evaluation import outputs_of
from training_core.examples import Examples

_INSTANTS = 12


class Watching:
    """Looks at a training at some twelve instants of its first steps, and leaves no trace in it.

    Args:
        model: Untrained; the one that is going to be trained.
        fixed: A few held-back rows.
        steps: That are looked at; the training may be longer.

    Attributes:
        model: A copy of it after those steps, in train mode; shared, so not to be changed.
        fixed: As given.
        outputs: Of the fixed rows by step, the untrained network's first, in eval mode.
        updates: By weight matrix, the norm of an update over that of the weights, at the instants.
        gradients: By parameter with a gradient, its norm there, before it is clipped.
        norms: The norm of all gradients together there.
        training: The whole short training, once it is done.
    """

    training: ShortTraining

    def __init__(self, model: nn.Module, fixed: Examples, *, steps: int) -> None:
        self.model = model
        self.fixed = fixed
        self.steps = steps
        self.outputs: dict[int, Tensor] = {}
        self.updates: dict[str, list[float]] = {}
        self.gradients: dict[str, list[float]] = {}
        self.norms: list[float] = []
        self._instants = {round(steps * i / (_INSTANTS - 1)) for i in range(_INSTANTS)}
        self._before: dict[str, Tensor] = {}
        self._look(0, model)

    def after_backward(self, step: int, model: nn.Module) -> None:
        """Note the gradients, before they are clipped."""
        if step + 1 not in self._instants:
            return
        self._before = {n: p.detach().clone() for n, p in weight_matrices(model).items()}
        squares = 0.0
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                norm = float(parameter.grad.detach().norm())
                self.gradients.setdefault(name, []).append(norm)
                squares += norm**2
        self.norms.append(squares**0.5)

    @torch.no_grad()
    def after_step(self, step: int, model: nn.Module) -> None:
        """Note the updates, and what the network says now."""
        if step + 1 in self._instants:
            for name, weights in weight_matrices(model).items():
                before = self._before[name]
                size, change = float(before.norm()), float((weights - before).norm())
                if size > 0:
                    self.updates.setdefault(name, []).append(change / size)
            self._look(step + 1, model)
        if step + 1 == self.steps:
            self.model = copy.deepcopy(model)

    def _look(self, step: int, model: nn.Module) -> None:
        with torch.random.fork_rng(devices=()):
            device = next(iter(self.fixed.arrays.values())).device
            self.outputs[step] = outputs_of(model, self.fixed, device=device).detach()
