"""The output layer's bias set so that the untrained network predicts what labels are on average.

The first steps of a training on a rare class, or on a target far from 0, otherwise only learn that
average (Karpathy, "A Recipe for Training Neural Networks", 2019; Lin et al. 2017, section 3.3).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import Parameter

from training_core.errors import ConfigurationError
from training_core.examples import Examples
from training_core.task import PADDING, Kind, Task
from training_core.untrained import untrained_outputs

_ROWS = 512  # that the untrained network is asked for; the labels' average is taken of all


def set_prior_bias(task: Task, model: nn.Module, examples: Examples) -> str:
    """Set the output layer's bias so that the mean prediction is the mean label.

    The bias is found by trying: changing it changes every output by the same.

    Args:
        task: For its kind and its predictions.
        model: Untrained, on the CPU, not sharded; changed.
        examples: Of the train split; at least two.

    Returns:
        The bias's name.

    Raises:
        ConfigurationError: There is no such bias, or none that gives this mean.
    """
    some = examples.take(slice(0, _ROWS))
    outputs = untrained_outputs(model, some)
    units = 1 if outputs.ndim == 1 else outputs.shape[-1]
    biases = [(n, p) for n, p in model.named_parameters() if p.ndim == 1 and p.numel() == units]
    for name, bias in reversed(biases):
        slope = _slope(model, bias, some, outputs)
        if slope is None:
            continue
        if task.kind in ("multiclass", "sequence"):
            shift = _shift_of_classes(task.kind, outputs, some.target, examples.target)
        else:
            shift = _shift_of_means(task, outputs, examples.target)
        with torch.no_grad():
            bias.add_((shift / slope).view_as(bias))
        return name
    raise ConfigurationError(
        f"training.bias_from_prior is set, but no bias of {type(model).__name__} of size {units} "
        "moves every output by the same",
        hint="let the last layer have a bias and nothing after it, or leave bias_from_prior out",
    )


def prior_outputs(kind: Kind, outputs: Tensor, target: Tensor) -> Tensor:
    """Return the constant that predicts the labels' average, shaped as outputs of one unit.

    Args:
        kind: Of the task.
        outputs: Any of the network, for their shape.
        target: The labels.
    """
    if kind in ("multiclass", "sequence"):
        return _class_shares(kind, target, outputs.shape[-1]).log()
    mean = target.double().mean(0)
    if kind != "regression":
        mean = _inside(mean, len(target)).logit()
    return mean.float().reshape(outputs.shape[1:])


def _slope(model: nn.Module, bias: Parameter, examples: Examples, outputs: Tensor) -> Tensor | None:
    """Return how far outputs move with the bias, if all of them do so alike; else None."""
    before = bias.detach().clone()
    probe = torch.linspace(0.5, 1.5, bias.numel())
    with torch.no_grad():
        bias.add_(probe)
    moved = untrained_outputs(model, examples) - outputs
    with torch.no_grad():
        bias.copy_(before)
    shares = moved / (probe if outputs.ndim > 1 else probe[0])
    slope = shares.median()
    alike = torch.allclose(shares, slope.expand_as(shares), rtol=1e-2, atol=1e-4)
    return slope if alike and float(slope.abs()) > 1e-3 else None


def _shift_of_means(task: Task, outputs: Tensor, target: Tensor) -> Tensor:
    """Solve mean(predict(outputs + shift)) = mean(target) for each unit by bisection."""
    goal = target.double().mean(0)
    if task.kind != "regression":
        goal = _inside(goal, len(target))
    goal = goal.reshape(outputs.shape[1:])

    def mean(shift: Tensor) -> Tensor:
        return task.predict(outputs + shift.float()).double().mean(0).reshape(goal.shape)

    low, high = _bracket(mean, goal)
    for _ in range(60):
        middle = (low + high) / 2
        below = mean(middle) < goal
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return (low + high) / 2


def _bracket(mean: Callable[[Tensor], Tensor], goal: Tensor) -> tuple[Tensor, Tensor]:
    """Return shifts whose mean predictions lie below and above the goal."""
    low, high = -torch.ones_like(goal), torch.ones_like(goal)
    for _ in range(60):
        too_high, too_low = mean(low) > goal, mean(high) < goal
        if not (too_high.any() or too_low.any()):
            return low, high
        low, high = torch.where(too_high, 2 * low, low), torch.where(too_low, 2 * high, high)
    raise ConfigurationError(
        "training.bias_from_prior is set, but no bias makes the mean prediction "
        f"{[round(float(value), 4) for value in goal.flatten()[:5]]}, the mean label",
        hint="let predictions rise with the outputs, or leave bias_from_prior out",
    )


def _shift_of_classes(kind: Kind, outputs: Tensor, target: Tensor, labels: Tensor) -> Tensor:
    """Return what to add to each class so that mean probabilities are the classes' shares."""
    logits = outputs.double().reshape(-1, outputs.shape[-1])
    if kind == "sequence":
        logits = logits[(target != PADDING).flatten()]
    wanted = _class_shares(kind, labels, outputs.shape[-1]).double().log()
    shift = torch.zeros_like(wanted)
    for _ in range(100):
        shift += wanted - (logits + shift).softmax(-1).mean(0).log()
    return shift - shift.mean()


def _class_shares(kind: Kind, target: Tensor, classes: int) -> Tensor:
    """Return each class's share, float32 [classes]; a class that is not there has half an example.

    Without that, the network could never learn of it.
    """
    labels = target.flatten().long()
    labels = labels[labels != PADDING] if kind == "sequence" else labels
    counts = torch.bincount(labels, minlength=classes).double().clamp_min(0.5)
    return (counts / counts.sum()).float()


def _inside(rate: Tensor, count: int) -> Tensor:
    """Keep rates half an example away from 0 and 1, where the logit is infinite."""
    return rate.clamp(0.5 / (count + 1), 1 - 0.5 / (count + 1))
