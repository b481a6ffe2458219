"""Where the loss leads: outputs that go down its slope must come to predict the label."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from training_core.checks.free_outputs import best_constant, descend, squashed, wrong_and_sure
from training_core.checks.loss.agreement import agrees, sureness
from training_core.checks.loss.by_itself import Broken
from training_core.examples import Examples
from training_core.task import Task

_SEVERAL = 3  # examples: one or two of a kind may be alike by chance
_SHARE = 0.1  # of rows that may be otherwise: targets clipped by the loss, ties, empty rows


def slope_leads_to_the_label(task: Task, outputs: Tensor, examples: Examples) -> Broken | None:
    """From the network's outputs, and from wrong ones, the loss goes to its floor at the label.

    Args:
        task: Gives loss and predictions.
        outputs: Of an untrained network.
        examples: As many.
    """
    target = examples.target
    gradients = _gradients(task, outputs, target)
    if isinstance(gradients, Broken):
        return gradients

    def losses(free: Tensor) -> Tensor:
        return task.loss(free, target)

    best = descend(losses, outputs, kind=task.kind)
    wrong = wrong_and_sure(task.kind, best, target)
    at_wrong = _gradients(task, wrong, target)
    flat = torch.as_tensor(at_wrong == 0)
    ends = [best, descend(losses, wrong, kind=task.kind)]
    with torch.no_grad():
        begun, ended = losses(wrong).double(), [losses(end).double() for end in ends]
        right = [agrees(task.kind, task.predict(end), target) for end in ends]
        before = agrees(task.kind, task.predict(wrong), target)
        right_side = wrong if task.kind == "regression" else -wrong
        floor = torch.minimum(torch.minimum(*ended), losses(right_side).double())
    counts = begun > floor + 1e-6 * floor.abs() + 1e-9  # others are of no weight, or all padding
    stuck = counts & flat & (ended[1] > floor + 0.1 * (begun - floor).abs())
    if float(stuck.double().mean()) > _SHARE:
        return Broken(
            message=f"the loss is flat where outputs are confidently wrong: {int(stuck.sum())} of "
            f"{len(target)} examples lose {float(begun[stuck].mean()):.3g} without a gradient "
            f"(floor {float(floor[stuck].mean()):.3g})",
            advice="clip gradients (training.optimiser.clip_norm), not the loss",
            measured=float(stuck.sum()),
            limit=_SHARE * len(target),
        )
    if not counts.any() and not bool(gradients.any()):
        return Broken(
            message="the loss is the same whatever the outputs: their gradient is 0",
            advice="let the loss be a function of the outputs",
            measured=0.0,
        )
    return (
        _without_floor(ended, target)
        or _disagreement(right, before, counts, ended)
        or _double_squash(task, best, examples)
        or _without_logarithm(task, best, target)
        or _smoothed_away(task, best, examples)
        or _ignored(task, counts, examples)
    )


def _gradients(task: Task, outputs: Tensor, target: Tensor) -> Tensor | Broken:
    """Return each example's largest gradient, [N]."""
    free = outputs.clone().requires_grad_()
    losses = task.loss(free, target)
    if not losses.requires_grad:
        return Broken(
            message="the loss does not depend on the outputs: it has no gradient",
            advice="look for detach, no_grad, item, argmax or a comparison in the loss",
        )
    (gradient,) = torch.autograd.grad(losses.double().sum(), free, allow_unused=True)
    if gradient is None:
        return Broken(
            message="the loss does not use the outputs: they have no gradient",
            advice="let the loss be a function of the outputs",
        )
    return gradient.reshape(len(target), -1).abs().amax(1)


def _without_floor(ended: list[Tensor], target: Tensor) -> Broken | None:
    lowest = float(torch.minimum(*ended).min())
    if lowest > -100.0 * max(1.0, float(target.double().abs().max())):
        return None
    odd = f"targets lie between {float(target.min()):g} and {float(target.max()):g}"
    return Broken(
        message=f"the loss falls without end ({lowest:.3g} after some steps on the outputs): it "
        f"has the wrong sign, or targets are not what it expects ({odd})",
        advice="turn the loss round, or bring targets to what it is made for",
        measured=lowest,
    )


def _disagreement(
    right: list[Tensor], before: Tensor, counts: Tensor, ended: list[Tensor]
) -> Broken | None:
    """Both ends must predict the label; where outputs began wrong tells how it fails."""
    if not counts.any():
        return None
    shares = [float(share[counts].mean()) for share in right]
    share = min(shares)
    if share >= 1 - _SHARE:
        return None
    said: dict[str, Any] = {"measured": share, "limit": 1 - _SHARE}
    lowest = float(ended[shares.index(share)][counts].mean())
    words = f"where the loss is lowest ({lowest:.3g}), {share:.0%} of predictions agree with labels"
    wrong_way = share < 0.5 and float(before[counts].mean()) >= 1 - _SHARE
    if wrong_way:
        return Broken(
            message=f"{words}: where they were to be wrong they agree, so predict is turned round",
            advice="let predict mean by an output what the loss means by it",
            **said,
        )
    return Broken(
        message=f"{words}: loss and predict mean different things by an output, or the loss "
        "compares it with another label",
        advice="look at the sign of the loss, at shifted or clipped targets, and at what predict "
        "does with an output",
        **said,
    )


def _double_squash(task: Task, lowest: Tensor, examples: Examples) -> Broken | None:
    twice = squashed(task, lowest, examples.target)
    if float(twice.double().mean()) <= _SHARE:
        return None
    with torch.no_grad():
        floor = float(task.loss(lowest, examples.target)[twice].double().mean())
        ceiling = float(task.loss(-10 * lowest, examples.target)[twice].double().mean())
    return Broken(
        message=f"outputs run away while the loss stays at {floor:.3g} or above, and it never "
        f"exceeds {ceiling:.3g}: it squashes them twice",
        advice="give the loss logits, not what sigmoid or softmax has made of them",
        measured=floor,
        limit=0.0,
    )


def _without_logarithm(task: Task, lowest: Tensor, target: Tensor) -> Broken | None:
    """Minus a probability lies between -1 and 0; minus its logarithm above 0."""
    if task.kind == "regression":
        return None
    with torch.no_grad():
        floor, ceiling = (float(task.loss(lowest * by, target).double().mean()) for by in (1, -10))
    if floor > -0.5 or abs(ceiling) > 1e-2 * abs(floor):
        return None
    return Broken(
        message=f"the loss lies between {floor:.3g} and {ceiling:.3g}: it is minus a probability, "
        "not minus its logarithm, and hardly moves where the network is wrong",
        advice="give nll_loss the output of log_softmax, or use cross_entropy",
        measured=floor,
        limit=0.0,
    )


def _smoothed_away(task: Task, lowest: Tensor, examples: Examples) -> Broken | None:
    """The best outputs must lose clearly less than those that are the same for all."""
    if task.kind == "regression":
        return None
    target = examples.target
    constant = best_constant(task, lowest, examples)
    with torch.no_grad():
        best, same = (float(task.loss(o, target).double().mean()) for o in (lowest, constant))
        sure = sureness(task.kind, task.predict(lowest), target)
    if sure >= 0.5 or same - best > 0.1 * abs(same):
        return None
    return Broken(
        message=f"where the loss is lowest, labels have a probability of {sure:.2f} only, and it "
        f"loses {best:.4g} where a constant loses {same:.4g}: there is next to nothing to learn",
        advice="look at label smoothing (0.1 is usual), temperature and weights of the loss",
        measured=sure,
        limit=0.5,
    )


def _ignored(task: Task, counts: Tensor, examples: Examples) -> Broken | None:
    """Examples whose loss is the same whatever is said of them."""
    units = torch.ones(len(counts)) if examples.units is None else examples.units
    ignored = ~counts & (units > 0)
    share = float(ignored.double().mean())
    if _are_all_of_one_label(task, ignored, examples.target):
        said = examples.target[ignored][0].tolist()
        return Broken(
            message=f"all {int(ignored.sum())} of {len(counts)} examples whose labels are {said}, "
            "and no others, have the same loss whatever is predicted: they teach nothing",
            advice="look for ignore_index and weights of 0; of labels that may be absent, use a "
            "loss in which these count too, such as binary_cross_entropy_with_logits",
            measured=share,
            limit=0.0,
        )
    if share <= _SHARE:
        return None
    return Broken(
        verdict="fail" if share > 0.5 or task.kind == "binary" else "warn",
        message=f"{int(ignored.sum())} of {len(counts)} examples have the same loss whatever is "
        "predicted: they teach nothing",
        advice="look at weights and masks of the loss, unless these classes are left out on "
        "purpose",
        measured=share,
        limit=_SHARE,
    )


def _are_all_of_one_label(task: Task, ignored: Tensor, target: Tensor) -> bool:
    """Are they just those with one certain set of labels, one that says something?

    What is masked has a value that is no label, such as -1.
    """
    if int(ignored.sum()) < _SEVERAL or bool(ignored.all()):
        return False
    if task.kind == "multiclass" and target.ndim == 1:
        return bool((target[ignored] >= 0).all()) and torch.equal(
            torch.isin(target, target[ignored]), ignored
        )
    if task.kind != "multilabel":
        return False
    first = target[ignored][0]
    if float(first.min()) < 0 or float(first.max()) > 1 or bool((first == 0.5).any()):
        return False
    return torch.equal((target == first).all(1), ignored)
