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
from training_core.task import Task

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
