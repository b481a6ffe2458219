"""What holds of a loss, of metrics and of predictions before any network: laws of their contract.

Each law returns None where it holds, else what was found and what to do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from training_core.checks.contract import Verdict
from training_core.examples import Examples
from training_core.task import PADDING, Task

_APART = 24  # examples that are taken one by one
Values = dict[str, Tensor]  # the loss, metrics and predictions of N examples, by name


@dataclass(frozen=True, kw_only=True)
class Broken:
    """A law that does not hold.

    Attributes:
        measured: The figure that says so.
        limit: What it is held against.
    """

    verdict: Verdict = "fail"
    message: str
    advice: str
    measured: float | None = None
    limit: float | None = None
    curves: dict[str, list[tuple[int, float]]] = field(default_factory=dict)


def values_of(task: Task, outputs: Tensor, target: Tensor) -> Values:
    """Return all that a task says of outputs, with one generator's state for each."""
    values: Values = {}
    with torch.no_grad():
        torch.default_generator.manual_seed(0)  # torch.manual_seed takes 3 ms
        values["the loss"] = task.loss(outputs, target)
        torch.default_generator.manual_seed(0)
        for name, metric in task.metrics(outputs, target).items():
            values[f"the metric {name}"] = metric
        torch.default_generator.manual_seed(0)
        values["the prediction"] = task.predict(outputs)
    return values


def shapes_fit(task: Task, outputs: Tensor, examples: Examples) -> Broken | None:
    """Outputs have the shape that their kind of task has, if its loss cannot do with another."""
    target, count = examples.target, len(examples)
    dimensions = {"binary": 1, "regression": 1, "multiclass": 2, "multilabel": 2, "sequence": 3}
    fits = outputs.ndim == dimensions[task.kind] and len(outputs) == count
    if task.kind == "multilabel":
        fits = fits and outputs.shape == target.shape
    if task.kind == "sequence":
        fits = fits and outputs.shape[:2] == target.shape
    shapes = f"outputs are {list(outputs.shape)}, the target is {list(target.shape)}"
    advice = f"let the network return what a {task.kind} task has: see the table in task.py"
    try:
        with torch.no_grad():
            loss = task.loss(outputs.clone(), target.clone())
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        first = (str(error).splitlines() or [""])[0]
        dtypes = f"{outputs.dtype} and {target.dtype}".replace("torch.", "")
        return Broken(
            message=f"the loss cannot be taken ({type(error).__name__}: {first}): {shapes}, their "
            f"types {dtypes}",
            advice=advice if not fits else "give the loss a target of the type it expects",
        )
    if loss.shape != (count,):
        return Broken(
            message=f"the loss of {count} examples is {list(loss.shape)}, not [{count}]: {shapes}"
            + _broadcast(outputs, target, loss, count),
            advice="return one value an example; the trainer takes the mean" if fits else advice,
        )
    if not fits:
        return Broken(
            verdict="warn",
            message=f"{shapes}; the loss takes it, others that read outputs may not",
            advice=advice,
        )
    return None


def _broadcast(outputs: Tensor, target: Tensor, loss: Tensor, count: int) -> str:
    shapes = {tuple(outputs.shape), tuple(target.shape)}
    if shapes == {(count,), (count, 1)} and loss.numel() == count * count:
        return " ([N] with [N, 1] broadcasts to every pair of examples)"
    return ""


def values_are_per_example(task: Task, outputs: Tensor, examples: Examples) -> Broken | None:
    """The loss and metrics are [N], float and finite."""
    count = len(examples)
    for name, value in values_of(task, outputs, examples.target).items():
        if name == "the prediction":
            if len(value) != count:
                return Broken(
                    message=f"predict gives {list(value.shape)} for {count} examples",
                    advice="return one prediction an example from predict",
                )
            continue
        if value.shape != (count,):
            return Broken(
                message=f"{name} of {count} examples is {list(value.shape)}, not [{count}]",
                advice="return one value an example; means are taken elsewhere",
            )
        if name == "the loss" and not value.is_floating_point():
            return Broken(
                message=f"{name} is {value.dtype}, which has no gradient".replace("torch.", ""),
                advice="return floating-point values",
            )
        wrong = int((~torch.isfinite(value.double())).sum())
        if wrong:
            return Broken(
                message=f"{name} is not finite for {wrong} of {count} examples, with the untrained "
                "network's outputs",
                advice="look for a logarithm or a division of 0",
                measured=float(wrong),
                limit=0.0,
            )
    return None


def predictions_are_probabilities(task: Task, outputs: Tensor, examples: Examples) -> Broken | None:
    """Predictions of all but regressions are shaped as outputs, and lie between 0 and 1."""
    if task.kind == "regression":
        return None
    noise = 3 * torch.randn(outputs.shape, generator=torch.Generator().manual_seed(0))
    squashed = float(outputs.min()) >= 0 and float(outputs.max()) <= 1  # by the network: as meant
    with torch.no_grad():
        said = task.predict(outputs if squashed else outputs + noise)
    advice = "return sigmoid or softmax of the outputs from predict"
    if said.numel() != outputs.numel():
        return Broken(
            message=f"predict gives {list(said.shape)} for outputs {list(outputs.shape)}: not the "
            "probability of each",
            advice=advice,
        )
    low, high = float(said.min()), float(said.max())
    if low < -1e-4 or high > 1 + 1e-4 or not math.isfinite(high - low):
        return Broken(
            message=f"predict gives values from {low:.3g} to {high:.3g}: no probabilities",
            advice=advice,
            measured=max(high, -low),
            limit=1.0,
        )
    return None


def nothing_is_written(task: Task, outputs: Tensor, examples: Examples) -> Broken | None:
    """Neither outputs nor the target are changed by who looks at them."""
    asked: dict[str, Callable[[Tensor, Tensor], object]] = {
        "the loss": task.loss,
        "the metrics": task.metrics,
        "predict": lambda given, target: task.predict(given),
    }
    for name, ask in asked.items():
        given, target = outputs.clone(), examples.target.clone()
        with torch.no_grad():
            ask(given, target)
        for what, after, before in (
            ("outputs", given, outputs),
            ("target", target, examples.target),
        ):
            if not torch.equal(after.nan_to_num(), before.nan_to_num()):
                return Broken(
                    message=f"{name} writes into the {what} it is given",
                    advice="work on a copy (clone) instead of in place",
                )
    return None


def examples_are_apart(task: Task, outputs: Tensor, examples: Examples) -> Broken | None:
    """Each example's values follow from its own output and target alone.

    Each is taken by itself (twice, for code that squeezes a batch of one) and beside the others.
    """
    outputs, target = outputs[:_APART], examples.target[:_APART]
    together = values_of(task, outputs, target)
    alone: dict[str, list[Tensor]] = {name: [] for name in together}
    for row in range(len(target)):
        rows = torch.tensor([row, row])
        for name, value in values_of(task, outputs[rows], target[rows]).items():
            if name in alone:
                alone[name].append(value[0])
    for name, parts in alone.items():
        whole, single = together[name].double(), torch.stack(parts).double()
        scale = float(whole.abs().mean()) + 1e-6
        apart = (whole - single).abs().reshape(len(target), -1).amax(1)
        limit = 1e-3 * scale + 1e-3 * whole.abs().reshape(len(target), -1).amax(1)
        differing = int((apart > limit).sum())
        if differing:
            return Broken(
                message=f"{name} of an example depends on the others of its batch: {differing} of "
                f"{len(target)} are another alone, by up to {float(apart.max()):.3g}",
                advice="look for a mean, a norm or a softmax over the first axis, a shuffle, or "
                "shapes that broadcast",
                measured=float(differing),
                limit=0.0,
            )
    return None


def is_repeatable(task: Task, outputs: Tensor, target: Tensor) -> bool:
    """Is the loss of a single example always the same?"""
    with torch.no_grad():
        first, second = (task.loss(outputs[[0, 0]], target[[0, 0]]) for _ in range(2))
    return bool(torch.allclose(first, second, equal_nan=True))


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
