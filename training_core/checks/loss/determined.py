"""Whether the loss determines what is predicted: no move of outputs may be free of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from training_core.checks.free_outputs import descend, wrong_and_sure
from training_core.checks.loss.by_itself import Broken
from training_core.examples import Examples
from training_core.task import PADDING, Task

_WIDEST = 512  # outputs of a unit; of wider ones, vocabularies, only the common shift is looked at
_NULL = 1e-5  # singular values below are rounding, as shares of the largest: gradients are float32
_SIZES = (2.0, -2.0, 6.0, -6.0)  # logits: 2 turns a probability of 0.27 into one of 0.73
_STILL = 1e-5  # of a loss: rounding of float32
_SHARE = 0.1  # of rows whose prediction may turn: ties


@dataclass(frozen=True)
class _Move:
    """A way to change outputs, for a person and for a tensor."""

    name: str
    of: Callable[[Tensor], Tensor]


def loss_determines_predictions(task: Task, outputs: Tensor, examples: Examples) -> Broken | None:
    """No shift, scale or exchange of outputs may turn predictions while no example's loss moves.

    Shifts are found, not guessed: they are the null space of all examples' gradients at points of
    several sizes. So what is flat in places only, as a hinge is, counts for nothing.

    Args:
        task: Gives loss and predictions.
        outputs: Of an untrained network; one number an example has no directions.
        examples: As many.
    """
    target = examples.target
    wide = outputs.ndim > 1 and outputs.shape[-1] > 1
    if not wide or (task.kind == "sequence" and not bool((target != PADDING).any())):
        return None
    best = descend(lambda free: task.loss(free, target), outputs, kind=task.kind)
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(outputs.shape, generator=generator)
    points = [outputs, best, wrong_and_sure(task.kind, best, target), 0.5 * noise, 4 * noise]
    for move in _moves(task, points, target):
        moved = [(point, move.of(point)) for point in points]
        if not all(_loses_the_same(task, *pair, target) for pair in moved):
            continue
        share = max(_turned(task, *pair, target) for pair in moved)
        if share > _SHARE:
            return Broken(
                message=f"the loss does not determine what is predicted: {move.name} moves no "
                f"example's loss, and turns {share:.0%} of the predictions",
                advice="let predict undo what the loss does with an output: softmax for classes "
                "that exclude each other (cross_entropy), sigmoid for labels that do not "
                "(binary_cross_entropy_with_logits)",
                measured=share,
                limit=_SHARE,
            )
    return None


def _moves(task: Task, points: list[Tensor], target: Tensor) -> Iterator[_Move]:
    width = points[0].shape[-1]
    free = [torch.ones(width), *_free_shifts(task, points, target)]
    for direction in free:
        name = _named(task, direction)
        for size in _SIZES:
            yield _Move(f"adding {size:g} to {name}", lambda o, d=size * direction: o + d)  # type: ignore[misc]
    for factor in (4.0, 0.25):
        yield _Move(f"multiplying outputs by {factor:g}", lambda o, by=factor: o * by)  # type: ignore[misc]
    yield _Move("exchanging an example's outputs", lambda o: o.roll(1, -1))


def _free_shifts(task: Task, points: list[Tensor], target: Tensor) -> list[Tensor]:
    """Return directions [K], largest entry 1, along which no gradient of any example points."""
    width = points[0].shape[-1]
    if width > _WIDEST:
        return []
    gradients = torch.cat([_gradient(task, point, target) for point in points]).double()
    if not bool(torch.isfinite(gradients).all()) or not bool(gradients.any()):
        return []
    asked = _asked_for(task, target, width)
    _, values, rows = torch.linalg.svd(gradients[:, asked], full_matrices=False)
    free = torch.zeros(0, width)
    for row in rows[values <= _NULL * values.max()].float():
        direction = torch.zeros(width)
        direction[asked] = row / row[row.abs().argmax()]
        free = torch.cat([free, direction[None]])
    single = [torch.eye(width)[k] for k in asked.tolist() if not gradients[:, k].any()]
    return [*single, *free]


def _gradient(task: Task, point: Tensor, target: Tensor) -> Tensor:
    """Return the gradient of each unit, [units, K]."""
    free = point.clone().requires_grad_()
    gradient: Tensor
    (gradient,) = torch.autograd.grad(task.loss(free, target).double().sum(), free)
    return gradient.reshape(-1, point.shape[-1])


def _asked_for(task: Task, target: Tensor, width: int) -> Tensor:
    """Return the outputs that labels of these examples speak of, int64.

    A class that does not occur may well be without a gradient: `nll_loss` reads that of the label.
    So may a label that all examples have or none.
    """
    if task.kind in ("multiclass", "sequence"):
        labels: Tensor = torch.unique(target[target != PADDING]).long()
        return labels[(labels >= 0) & (labels < width)]
    if target.ndim == 2 and target.shape[1] == width:
        return (target.amin(0) != target.amax(0)).nonzero().flatten()
    return torch.arange(width)


@torch.no_grad()
def _loses_the_same(task: Task, before: Tensor, after: Tensor, target: Tensor) -> bool:
    one, other = (task.loss(outputs, target).double() for outputs in (before, after))
    return bool(((one - other).abs() <= _STILL * (one.abs() + other.abs()) + 1e-6).all())


@torch.no_grad()
def _turned(task: Task, before: Tensor, after: Tensor, target: Tensor) -> float:
    """Return the share of examples, of a sequence of positions, that are predicted otherwise."""
    one, other = (task.predict(outputs).double() for outputs in (before, after))
    if task.kind == "regression":
        apart = (one - other).abs() > 0.5 * float(target.double().std(unbiased=False))
        return float(apart.double().mean())
    if task.kind in ("multiclass", "sequence"):
        turned = one.argmax(-1) != other.argmax(-1)
        turned |= (one - other).abs().amax(-1) > 0.5
        real = target != PADDING if turned.shape == target.shape else torch.ones_like(turned)
        return float(turned[real].double().mean())
    turned = ((one >= 0.5) != (other >= 0.5)).reshape(len(one), -1).any(1)
    return float(turned.double().mean())


def _named(task: Task, direction: Tensor) -> str:
    if bool((direction == 1).all()):
        return "all outputs of an example"
    names = list(getattr(task, "labels", None) or getattr(task, "classes", None) or ())
    parts = [
        f"{float(direction[k]):.2g} of {names[k] if k < len(names) else f'output {k}'!r}"
        for k in direction.abs().argsort(descending=True)[:3].tolist()
        if abs(float(direction[k])) > 0.05
    ]
    return ", ".join(parts)
