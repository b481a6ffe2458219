"""A network whose outputs are taken in units of what the loss wants: targets of any scale."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from training_core.checks.free_outputs import best_constant, descend
from training_core.examples import Examples
from training_core.task import Task


class Rescaled(nn.Module):
    """Multiplies a network's outputs and adds to them, neither of which is trained.

    A network that has to climb to a target of 5000 ± 2000 by steps of 0.001 is slow, not broken:
    what it can learn shows in these units.
    """

    def __init__(self, inner: nn.Module, *, scale: float, shift: float) -> None:
        super().__init__()
        self.inner, self.scale, self.shift = inner, scale, shift

    def forward(self, **arrays: Tensor) -> Tensor:
        """Return the network's outputs in the loss's units."""
        outputs: Tensor = self.inner(**arrays)
        return outputs * self.scale + self.shift


def wanted_scale(task: Task, outputs: Tensor, examples: Examples) -> tuple[float, float]:
    """Return the deviation and the middle of the outputs that the loss wants of a regression.

    Quartiles, since single outputs may run away.
    """
    start = best_constant(task, outputs, examples)
    free = descend(lambda o: task.loss(o, examples.target), start, kind=task.kind).double()
    low, middle, high = torch.quantile(free, torch.tensor([0.25, 0.5, 0.75], dtype=free.dtype))
    scale = float(high - low) / 1.349 or float(free.std()) or 1.0  # of a normal distribution
    return scale, float(middle)
