"""Sequences: what a loss that is summed over positions has to keep to."""

from __future__ import annotations

import torch
from torch import Tensor

from training_core.checks.loss.by_itself import Broken
from training_core.examples import Examples
from training_core.task import PADDING, Task


def padding_counts_for_nothing(task: Task, outputs: Tensor, examples: Examples) -> Broken | None:
    """Positions of padding have no gradient, and `units` counts the positions that have one."""
    target = examples.target
    if task.kind != "sequence":
        return None
    free = outputs.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(task.loss(free, target).double().sum(), free)
    moved, padding = gradient.abs().amax(-1) > 0, target == PADDING
    if (moved & padding).any():
        return Broken(
            message=f"{int((moved & padding).sum())} of {int(padding.sum())} positions of padding "
            f"(target {PADDING}) have a gradient",
            advice=f"give the loss ignore_index={PADDING}, or multiply it with target != {PADDING}",
            measured=float((moved & padding).sum()),
            limit=0.0,
        )
    if examples.units is None or not moved.any():
        return None
    counted, units = float(moved.sum()), float(examples.units.sum())
    with_padding = bool(padding.any()) and abs(units - target.numel()) < 0.5
    # more units than gradients may be tokens of weight 0
    if units < counted - 0.5 or units > 1.5 * counted or with_padding:
        return Broken(
            message=f"units says that {len(target)} examples have {units:g} units, and the loss "
            f"counts {counted:g} positions",
            advice="let units count the positions that the loss sums over",
            measured=units,
            limit=counted,
        )
    if _units_miss_positions(task, outputs, examples, moved):
        return Broken(
            message="units is no count of the positions that the loss sums over: in all, examples "
            f"have {units:g} units and {counted:g} such positions, and no fixed share of them each",
            advice="let units count the positions that the loss sums over",
            measured=units,
            limit=counted,
        )
    return None


def _units_miss_positions(task: Task, outputs: Tensor, examples: Examples, moved: Tensor) -> bool:
    """Say whether units follow neither the positions, nor their weights, nor the target.

    Weights show where all classes are equally likely: a position loses its weight times log V.
    """
    assert examples.units is not None
    units, target = examples.units.double(), examples.target
    if torch.equal(units, (target != PADDING).sum(1).double()):
        return False  # some that it counts may have no weight
    with torch.no_grad():
        weights = task.loss(torch.zeros_like(outputs), target).double()
    for expected in (moved.sum(1).double(), weights):
        counts = expected > 0
        share = units[counts] / expected[counts]
        if not counts.any() or share.max() <= 1.01 * share.min():
            return False
    return True


def losses_are_summed_over_units(task: Task, outputs: Tensor, examples: Examples) -> Broken | None:
    """Of a sequence with units, the losses of its two halves add up to its own.

    A mean would be divided by the units once more.
    """
    target = examples.target
    if task.kind != "sequence" or examples.units is None:
        return None
    even = torch.arange(target.shape[1]).remainder(2).eq(0).expand_as(target)
    halves = [torch.where(keep, target, PADDING) for keep in (even, ~even)]
    enough = torch.stack([(half != PADDING).sum(1) for half in halves]).amin(0) > 0
    if not enough.any():
        return None
    try:
        with torch.no_grad():
            whole = float(task.loss(outputs, target)[enough].double().sum())
            parts = sum(float(task.loss(outputs, half)[enough].double().sum()) for half in halves)
    except (RuntimeError, IndexError):
        return None  # it knows no padding, and needs none
    if whole > 0 and 1.9 < parts / whole < 2.1:
        return Broken(
            message=f"the loss of an example is a mean over its positions (its two halves together "
            f"lose {parts / whole:.3g} times as much), which is divided by units once more",
            advice="sum over positions, or let units return None",
            measured=parts / whole,
            limit=1.0,
        )
    return None
