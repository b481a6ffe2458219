"""All weights in one buffer and all gradients in another.

An operation on many small tensors costs its start many times: clipping, the update and zeroing of
a small network take longer than its arithmetic. On two buffers each is one operation.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn import Parameter

from training_core.errors import TrainingFailed
from training_core.optim.groups import Parts, by_decay, grouped

# Bytes that a CPU's widest vectors take, and that a GPU's matrix kernels want weights aligned to.
UNIT = 64


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring parameters that are updated as if they were one: [start, stop) of a buffer.

    They are of one group, counted as in `parameter_groups`.
    """

    start: int
    stop: int
    decays: bool
    group: int


class FlatParameters:
    """Moves a model's trained parameters into one buffer; each stays what it was, as a view.

    Those that decay come first. Gradients are views of the second buffer and have to stay: they are
    zeroed, never set to None, so a parameter that takes no part in a step has a gradient of zeros.
    The model has to be on its device, and must not be moved afterwards.

    Attributes:
        weights, gradients: The buffers, 1-D; zeros lie between parameters for alignment.
        decaying, others: The parameters, in the model's order.
        parts: What is trained alike; None: all of it.
        runs: What may be updated at once with the very result of an update one by one.
    """

    def __init__(self, model: nn.Module, *, parts: Parts | None = None) -> None:
        assert self.fits(model)
        self.parts = parts
        self.decaying, self.others = by_decay(model)
        first = (self.decaying + self.others)[0]
        self._unit = UNIT // first.element_size()
        self._offsets: dict[Parameter, int] = {}
        self.runs: list[Run] = []
        size = self._lay_out()
        self.weights = torch.zeros(size, dtype=first.dtype, device=first.device)
        self.gradients = torch.zeros_like(self.weights)
        self._attach()

    @staticmethod
    def fits(model: nn.Module) -> bool:
        """Say whether parameters can share a buffer: of one dtype, on one device, unsharded."""
        trained = [p for p in model.parameters() if p.requires_grad]
        kinds = {(p.dtype, p.device) for p in trained}
        whole = not any(isinstance(p, DTensor) or p.layout != torch.strided for p in trained)
        return len(kinds) == 1 and whole and trained[0].is_floating_point()

    def views(self, buffer: Tensor) -> dict[Parameter, Tensor]:
        """Return each parameter's part of a buffer that is laid out like `weights`."""
        return {
            p: buffer.as_strided(p.size(), torch.empty_like(p, device="meta").stride(), offset)
            for p, offset in self._offsets.items()
        }

    def collected(self) -> Tensor:
        """Return the buffer of all gradients, after backward.

        Raises:
            TrainingFailed: Gradients are no longer views, so the buffer is without them.
        """
        if self._first.grad is not self._first_gradient:
            raise TrainingFailed(
                "gradients were set to None or replaced while they lie in one buffer",
                hint="leave zeroing to the trainer: call no zero_grad() in the task or the model",
            )
        return self.gradients

    def zero(self) -> None:
        """Zero all gradients."""
        self.gradients.zero_()

    def _has_tail(self, parameter: Parameter) -> bool:
        return parameter.numel() % self._unit != 0

    def _lay_out(self) -> int:
        """Give each parameter its place; return the size of a buffer.

        The last odd elements of a tensor are rounded differently than those that fill a vector. So
        a parameter that has some ends a run, and comes after those that have none.
        """
        place = 0
        groups = grouped(self.decaying, self.others, parts=self.parts)
        for group, (members, decays) in enumerate(groups):
            start = place
            ordered = sorted(members, key=self._has_tail)
            for parameter in ordered:
                self._offsets[parameter] = place
                end = place + parameter.numel()
                place = -(-end // self._unit) * self._unit
                if self._has_tail(parameter) or parameter is ordered[-1]:
                    self.runs.append(Run(start, end, decays, group))
                    start = place
        return place

    @torch.no_grad()
    def _attach(self) -> None:
        weights, gradients = self.views(self.weights), self.views(self.gradients)
        for parameter in self._offsets:
            weights[parameter].copy_(parameter)
            if parameter.grad is not None:
                gradients[parameter].copy_(parameter.grad)
            parameter.data = weights[parameter]
            parameter.grad = gradients[parameter]
        self._first = next(iter(self._offsets))
        self._first_gradient = self._first.grad
