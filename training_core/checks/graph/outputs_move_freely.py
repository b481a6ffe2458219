"""No output is stuck at a bound that the targets are beyond: a ReLU, a clamp, a squashed value."""

from __future__ import annotations

import copy
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from training_core.checks.contract import Check, Finding, NotApplicable
from training_core.checks.graph.bounded import beyond_bounds
from training_core.checks.subject import Subject
from training_core.examples import Examples

_ROWS = 256
_FEW = 0.01  # share of all outputs below which a tie is chance
_MANY = 0.05  # share of all outputs that a sound network does not have stuck
_BEYOND = 0.02  # share of examples that may want outputs beyond a bound


class OutputsMoveFreely(Check):
    """After a short training, outputs that tie at their largest or smallest value are looked at:
    where the loss asks for more in that direction and not one parameter can give it, they are
    stuck. A ReLU on the output of a regression with values below 0 is the usual case.

    A tanh or a sigmoid is never quite at its bound. So the weights of the last layers are made far
    larger: where outputs stay within a bound, and a regression wants them beyond, that is found."""

    name = "outputs_move_freely"
    looks_at = "no output is stuck at a bound while the loss pulls it further"
    costs: ClassVar[Literal["little", "training"]] = "training"

    def look(self, subject: Subject) -> Finding:
        model = copy.deepcopy(subject.trained.model).eval()
        examples = subject.batch(_ROWS)
        found = {
            "smallest": _stuck(subject, model, examples, lowest=True),
            "largest": _stuck(subject, model, examples, lowest=False),
        }
        end, (share, bound) = max(found.items(), key=lambda item: item[1][0])
        message = (
            f"{share:.0%} of the outputs are stuck at {bound:.4g}, the {end} there is, while the "
            "loss pulls them beyond"
        )
        finding = self._bounded(subject, model, examples) if share < _MANY else None
        if finding is not None:
            return finding
        if share < _FEW:
            return self.passed(
                "no output is stuck at a bound while the loss pulls it further",
                measured=share,
                limit=_MANY,
            )
        advice = "take the activation or the clamp off the network's output"
        if share < _MANY:
            return self.warned(message, advice=advice, measured=share, limit=_MANY)
        return self.failed(message, advice=advice, measured=share, limit=_MANY)

    def _bounded(self, subject: Subject, model: nn.Module, examples: Examples) -> Finding | None:
        """No weights must be too small for what the loss wants."""
        found = beyond_bounds(subject, model, examples)
        if found is None or found.share <= _BEYOND:
            return None
        return self.failed(
            f"whatever the weights, outputs stay between {found.lowest:.4g} and "
            f"{found.highest:.4g}, and for {found.share:.0%} of the examples the loss is lowest "
            "beyond",
            advice="take what squashes the output away, or scale the target into its range",
            measured=found.share,
            limit=_BEYOND,
        )


def _stuck(
    subject: Subject, model: nn.Module, examples: Examples, *, lowest: bool
) -> tuple[float, float]:
    """Return the share of outputs that are stuck at one end, and that end."""
    outputs = model(**examples.arrays)
    if not outputs.requires_grad:
        raise NotApplicable("the outputs do not depend on a parameter that is trained")
    values = outputs.detach()
    bound = values.min() if lowest else values.max()
    tied = values == bound
    if int(tied.sum()) < 2 or not bool(torch.isfinite(bound)):
        return 0.0, float(bound)
    pull = _pull(subject, values, examples)
    wanted = tied & (pull < 0 if lowest else pull > 0)
    share = float(wanted.double().mean())
    if share < _FEW or _moved(model, outputs, wanted):
        return 0.0, float(bound)
    return share, float(bound)


def _pull(subject: Subject, outputs: Tensor, examples: Examples) -> Tensor:
    """Where the loss would have each output go: below 0 down, above 0 up."""
    free = outputs.float().clone().requires_grad_()
    losses = subject.task.loss(free, examples.target)
    (slope,) = torch.autograd.grad(losses.sum(), free)
    return -slope


def _moved(model: nn.Module, outputs: Tensor, wanted: Tensor) -> bool:
    """Say whether any parameter moves any of the outputs that are wanted elsewhere."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    # of random size, so that rows that pull apart do not cancel
    weights = torch.rand(outputs.shape, dtype=torch.float32) + 0.5
    total = (outputs.float() * weights)[wanted].sum()
    slopes = torch.autograd.grad(total, parameters, allow_unused=True)
    return any(slope is not None and bool(slope.abs().max() > 0) for slope in slopes)
