"""Labels that a network tells apart without an augmentation, and never with it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor, nn

from training_core.augmentation import augmentation_of
from training_core.checks.graph.calling import copy_of
from training_core.checks.short_training import ShortTraining, train_briefly
from training_core.checks.subject import Subject
from training_core.evaluation import outputs_of
from training_core.examples import Examples
from training_core.feeds.order import order
from training_core.task import Task

_ROWS = 1024
_LEAST = 12  # examples of a class, before it is said how well it is told from another
_CLASSES = 12  # the most frequent ones, all pairs of which are looked at
_POOR, _CHANCE, _GOOD = 0.75, 0.65, 0.95  # chances that of two examples the right one ranks higher
_DROP = 0.05  # of these chances, that the augmentation costs
_TAKEN = 0.2  # share of a class's augmented examples that are taken for another one
_LONGER = 3  # times the steps, before it is said that something is never learned


def plain_training(subject: Subject) -> ShortTraining:
    """Return the short training as it is without the augmentation."""
    task = copy.copy(subject.task)
    task.__class__ = type(type(task).__name__, (type(task),), {"augment": Task.augment})
    return _train(subject, task, steps=subject.short_steps, model=subject.build())


def longer_training(subject: Subject) -> nn.Module:
    """Return the network of the short training after three times its steps, augmented as it is."""
    return _train(
        subject,
        subject.task,
        steps=(_LONGER - 1) * subject.short_steps,
        model=copy_of(subject, subject.trained.model),
    ).model


def told_apart(subject: Subject, model: nn.Module, examples: Examples) -> dict[str, float]:
    """Say how well a network tells labels apart: 0.5 is chance, 1 perfect.

    Of two classes, and of having a label or not, it is the area under the ROC curve; of numbers
    the correlation, on the same scale. Labels of too few examples are left out; sequences too.
    """
    kind, target = subject.task.kind, examples.target
    said = subject.task.predict(outputs_of(model, examples, device=subject.device)).double()
    if kind == "binary":
        return _known({"the two classes": _area(said.flatten(), target.flatten() > 0.5)})
    if kind == "multilabel":
        columns = range(target.shape[1])
        return _known({f"label {i}": _area(said[:, i], target[:, i] > 0.5) for i in columns})
    if kind == "regression" and target.ndim == 1 and len(target) >= 2 * _LEAST:
        both = torch.corrcoef(torch.stack([said.flatten(), target.double()]))[0, 1]
        return {"high and low targets": 0.5 + 0.5 * float(torch.nan_to_num(both))}
    if kind != "multiclass" or target.ndim > 1:
        return {}
    counts = target.bincount(minlength=said.shape[1])
    frequent = sorted(counts.argsort(descending=True)[:_CLASSES].tolist())
    found = {}
    for one, other in combinations(frequent, 2):
        rows = (target == one) | (target == other)
        ratio = (said[rows, one].clamp(min=1e-30) / said[rows, other].clamp(min=1e-30)).log()
        found[f"classes {one} and {other}"] = _area(ratio, target[rows] == one)
    return _known(found)


def doubtful(subject: Subject) -> bool:
    """Whether the network that was trained briefly, augmented, leaves any labels untold."""
    found = told_apart(subject, subject.trained.model, _some(subject.held_back))
    return not found or min(found.values()) < _GOOD


@dataclass(frozen=True)
class Lost:
    """Labels that are worse told apart for the augmentation.

    Attributes:
        said: Which, and how well.
        measured: How well in augmented held-back examples.
        broken: Nothing tells them apart any more, or the augmentation makes one of the other.
    """

    said: str
    measured: float
    broken: bool


def unlearnable(subject: Subject, plain: Callable[[], ShortTraining]) -> Lost | None:
    """Say which labels are not told apart any more once examples are augmented.

    Strong augmentations slow learning down, so three times the steps are allowed, and held-back
    examples are asked for augmented too (train ones may be known by heart). Only where both are at
    chance, or where one class's augmented examples are taken for the other's and the other way
    round by a network that knows raw ones, is it certain that what tells them is taken away.

    Args:
        subject: Its task augments.
        plain: Trains without; called only where something is left untold with it.
    """
    held = _some(subject.held_back)
    found = told_apart(subject, subject.trained.model, held)
    if all(share >= _GOOD for share in found.values()):
        return None
    without = told_apart(subject, plain().model, held)
    lost = [
        name
        for name, share in found.items()
        if without[name] >= max(_GOOD, share + _DROP)
    ]  # fmt: skip
    if not lost:
        return None
    longer = longer_training(subject)
    augment = augmentation_of(subject.task, seed=1)
    augmented = augment(held, sample=0, part=0)
    of_raw, of_both = told_apart(subject, longer, held), told_apart(subject, longer, augmented)
    still = [
        name
        for name in lost
        if of_raw[name] <= without[name] - _DROP and of_both.get(name, 1.0) < _GOOD
    ]
    if not still:
        return None
    worst = min(still, key=lambda name: of_both[name])
    said = (
        f"{worst} are told apart without the augmentation (by {without[worst]:.2f}, where 0.5 is "
        f"chance and 1 perfect), with it by {of_raw[worst]:.2f} after {_LONGER} times the steps, "
        f"and by {of_both[worst]:.2f} in held-back examples that are augmented"
    )
    chance = of_raw[worst] < _POOR and of_both[worst] < _CHANCE
    exchanged = _exchanged(subject, plain().model, augmented, worst)
    if exchanged:
        said += f"; a network that knows raw examples takes {exchanged}"
    return Lost(said, of_both[worst], broken=chance or bool(exchanged))


def _exchanged(subject: Subject, model: nn.Module, augmented: Examples, pair: str) -> str:
    """Say how often examples of two classes are taken for the other; empty: no more than others.

    Unlike noise, which makes all examples look like one class, or like any.
    """
    if subject.task.kind != "multiclass":
        return ""
    said = subject.task.predict(outputs_of(model, augmented, device=subject.device))
    if said.shape[1] < 3:
        return ""
    one, other = (int(word) for word in pair.split() if word.isdigit())
    found, shares = said.argmax(1), []
    for own, theirs in ((one, other), (other, one)):
        taken = found[augmented.target == own].bincount(minlength=said.shape[1]).double()
        taken /= taken.sum().clamp(min=1)
        rest = (1 - taken[own] - taken[theirs]) / (said.shape[1] - 2)
        if float(taken[theirs]) < max(_TAKEN, 2 * float(rest)):
            return ""
        shares.append(float(taken[theirs]))
    return (
        f"{shares[0]:.0%} of augmented examples of {one} for {other}, and {shares[1]:.0%} of those "
        f"of {other} for {one}"
    )


def _train(subject: Subject, task: Task, *, steps: int, model: nn.Module) -> ShortTraining:
    return train_briefly(
        task,
        model,
        subject.examples,
        steps=steps,
        batch_size=subject.batch_size,
        training=subject.training,
    )


def _some(examples: Examples) -> Examples:
    return examples.take(order(seed=7, epoch=0, count=len(examples))[:_ROWS])


def _area(scores: Tensor, positive: Tensor) -> float | None:
    """Return the area under the ROC curve; None: too few of one of the two."""
    count, rest = int(positive.sum()), int((~positive).sum())
    if min(count, rest) < _LEAST:
        return None
    above = scores[positive][:, None] - scores[~positive][None]
    return float(((above > 0).double() + 0.5 * (above == 0).double()).mean())


def _known(found: dict[str, float | None]) -> dict[str, float]:
    return {name: share for name, share in found.items() if share is not None}
