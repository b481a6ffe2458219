"""The loss by itself: outputs that may take any value go down its slope, without a network.

What no network can do better than is found so for any loss, without knowing its formula: Rprop
(Riedmiller and Braun 1993) looks at the signs of gradients only, so neither the loss's scale nor
the outputs' matters.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from training_core.examples import Examples
from training_core.prior_bias import prior_outputs
from training_core.task import PADDING, Kind, Task

STEPS = 200  # from 0.1 to a target of 5000 and settled there within 1e-4: some 120
_PATIENCE = 40  # steps without gain: nothing moves any more, or only back and forth
_FURTHEST_STEP = {"regression": 1e9}  # others have logits, for which 50 is beyond any doubt


def descend(losses: Callable[[Tensor], Tensor], start: Tensor, *, kind: Kind) -> Tensor:
    """Return where outputs go by themselves to lower their loss.

    A loss may be none where outputs cannot be, such as the logarithm of a rate below 0: what went
    there goes back, and comes nearer in smaller steps.

    Args:
        losses: Of outputs shaped as `start`.
        start: Left as it is.
        kind: Of the task.
    """
    outputs = start.detach().float().clone()
    furthest = _FURTHEST_STEP.get(kind, 50.0)
    steps, before = torch.full_like(outputs, 0.1), torch.zeros_like(outputs)
    lowest, best, last_gain = float("inf"), outputs, 0
    inside, known = outputs, torch.zeros((), dtype=torch.bool)
    for step in range(STEPS):
        outputs = outputs.detach().requires_grad_()
        each = losses(outputs).double()
        is_loss = torch.isfinite(each.detach())
        lost = known & ~is_loss
        if lost.any():
            # whichever outputs these examples share with whom, they are those with a gradient
            (gradient,) = torch.autograd.grad(each[lost].sum(), outputs)
            theirs = gradient != 0  # NaN is not 0 either
            outputs = torch.where(theirs, inside, outputs.detach())
            steps = torch.where(theirs, steps / 4, steps)
            continue
        inside, known = outputs.detach(), is_loss
        total = each.sum()
        value = float(total.detach())
        if value < lowest:
            last_gain = step if value < lowest - 1e-7 * abs(lowest) else last_gain
            lowest, best = value, outputs.detach()
        if not total.requires_grad or step > last_gain + _PATIENCE:
            break
        (gradient,) = torch.autograd.grad(total, outputs, allow_unused=True)
        if gradient is None or not gradient.any():
            break
        signs = gradient.nan_to_num(0.0).sign()
        turned = signs * before
        factors = torch.where(turned > 0, 1.2, torch.where(turned < 0, 0.5, 1.0))
        steps = (steps * factors).clamp(1e-9, furthest)
        before = torch.where(turned < 0, 0.0, signs)  # after a turn, one step is left out
        outputs = outputs.detach() - steps * before
    return best


def best_constant(task: Task, outputs: Tensor, examples: Examples) -> Tensor:
    """Return the outputs, all alike, whose loss is lowest, shaped as `outputs`.

    Args:
        task: Gives the loss.
        outputs: Any of the network, for their shape.
        examples: As many as outputs.
    """

    def losses(constant: Tensor) -> Tensor:
        return task.loss(constant.expand(outputs.shape), examples.target)

    unit = outputs.shape[-1:] if task.kind == "sequence" else outputs.shape[1:]
    starts = [torch.zeros(unit), prior_outputs(task.kind, outputs, examples.target).reshape(unit)]
    start = min(starts, key=lambda constant: float(losses(constant).double().sum()))
    return descend(losses, start, kind=task.kind).expand(outputs.shape).clone()


def best_shared(task: Task, outputs: Tensor, examples: Examples, groups: Tensor) -> Tensor:
    """Return the outputs whose loss is lowest where those of one group must be the same.

    Args:
        task: Gives the loss.
        outputs: Any of the network, for their shape.
        examples: As many as outputs.
        groups: int64 [N], of a sequence [N, T]: numbers from 0.
    """
    tail = outputs.shape[groups.ndim :]
    start = torch.zeros((int(groups.max()) + 1, *tail))
    if task.kind == "regression":
        start = start + prior_outputs(task.kind, outputs, examples.target)
    shared = descend(lambda free: task.loss(free[groups], examples.target), start, kind=task.kind)
    return shared[groups]


def squashed(task: Task, outputs: Tensor, target: Tensor) -> Tensor:
    """Say of each example whether its loss squashes logits a second time, bool [N].

    The loss then has a floor above 0 that is reached at infinity only, and no wrong answer costs
    more than a certain amount. Label smoothing has its floor at finite logits; cross-entropy has no
    ceiling; the Brier score has a ceiling, and a floor of 0.

    Args:
        task: Gives the loss.
        outputs: Those of the lowest loss, from `descend`.
        target: The labels.
    """
    if task.kind == "regression":
        return torch.zeros(len(target), dtype=torch.bool)
    with torch.no_grad():
        floor, beyond, wrong, more_wrong = (
            task.loss(outputs * factor, target).double() for factor in (1.0, 10.0, -1.0, -10.0)
        )
    ceiling = torch.isfinite(more_wrong) & (more_wrong <= wrong * 1.05 + 1e-6)
    return ceiling & (beyond <= floor + 1e-4 * floor.abs()) & (floor > 0.05 * more_wrong)


def wrong_and_sure(kind: Kind, outputs: Tensor, target: Tensor) -> Tensor:
    """Return outputs that are confidently wrong: logits of 4, or a value three deviations off.

    Args:
        kind: Of the task.
        outputs: Those of the lowest loss.
        target: The labels.
    """
    if kind == "regression":
        return outputs + 3 * outputs.std(unbiased=False).clamp_min(1e-6)
    if kind in ("binary", "multilabel"):
        return torch.where(target >= 0.5, -4.0, 4.0).reshape(outputs.shape)
    classes = outputs.shape[-1]
    truth = torch.where(target == PADDING, 0, target).long()
    wrong = torch.zeros(outputs.shape)
    wrong.scatter_(-1, ((truth + 1) % classes).unsqueeze(-1), 4.0)
    return wrong.scatter_(-1, truth.unsqueeze(-1), -4.0)
