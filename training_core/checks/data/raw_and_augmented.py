"""What a network that was trained on augmented examples makes of raw ones, and the other way."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from training_core.augmentation import augmentation_of
from training_core.checks.data.harm import Harm
from training_core.checks.data.unlearnable import longer_training
from training_core.checks.free_outputs import best_constant
from training_core.checks.graph.calling import copy_of
from training_core.checks.losses import unit_losses_of
from training_core.checks.short_training import ShortTraining
from training_core.checks.subject import Subject
from training_core.evaluation import outputs_of
from training_core.examples import Examples
from training_core.feeds.order import order
from training_core.task import PADDING

_ROWS, _LEAST = 1_024, 50
_CONSTANT = 256  # of them, for which the best constant is sought
_ERRORS = 4.0  # standard errors beyond which it is no chance
_GIVEN_UP, _RATHER = 0.5, 0.25  # of what was learned on augmented rows, lost on raw ones
_KNOWS = 0.8  # of the target's variance, explained by a network that never saw an augmented row
_MOVED, _RATHER_MOVED = 0.4, 0.25  # of the deviation of its answers, by which they move
_WORSE = 1.3  # times what is left unexplained, though three times as many steps were taken
_WRONG = 0.1  # share of raw examples, or positions, that a network knows labels in spite of
_CHANGED, _POSITIONS = 0.2, 0.05  # share of examples, of positions, whose answer another one is
_LOST = 0.1  # of what the plain training gained over the best constant
_MORE_WRONG = 0.01  # share of raw answers; noise by itself makes a network less sure, and no worse


def loses_on_raw(subject: Subject) -> Harm | None:
    """Hold the loss of raw train rows against that of the same rows augmented, in eval mode.

    Raw examples are the easier ones, and evaluation sees nothing else. Where they lose far more,
    the network was trained on something else than it is going to be asked.
    """
    model = copy_of(subject, subject.trained.model)
    raw = subject.batch(_ROWS, seed=13)
    augmented = augmentation_of(subject.task, seed=2)(raw, sample=0, part=0)
    one, other = (unit_losses_of(subject, model, each) for each in (raw, augmented))
    apart = one - other
    if len(raw) < 2 or not apart.isfinite().all():
        return None
    with torch.no_grad():
        few = augmented.take(slice(0, _CONSTANT))
        outputs = outputs_of(model, few, device=subject.device)
    constant = best_constant(subject.task, outputs, few)
    nothing = float(subject.loss(constant, few))
    learned = nothing - float(other.mean())
    error = _ERRORS * float(apart.std()) / len(apart) ** 0.5
    lost = float(apart.mean())
    if learned <= error or lost <= error or lost < _RATHER * learned:
        return None
    return Harm(
        said="trained on augmented examples, the network loses "
        f"{float(other.mean()):.4g} on these and {float(one.mean()):.4g} on the same examples as "
        f"they are, where knowing nothing loses {nothing:.4g}: evaluation and serving see examples "
        "that training never did",
        advice="leave raw examples among what augment returns",
        measured=lost / learned,
        limit=_GIVEN_UP,
        broken=lost > _GIVEN_UP * learned,
    )


def answers_moved(subject: Subject, plain: Callable[[], ShortTraining]) -> Harm | None:
    """Ask a network that knows raw examples only what an augmentation does to its answers.

    Where they move by much and the targets stay, the augmentation changes what the target is told
    by; that this costs is then measured with a training of three times as many steps.
    """
    if subject.task.kind in ("binary", "multiclass", "sequence"):
        return _labels_moved(subject, plain)
    held = subject.held_back.take(order(seed=7, epoch=0, count=len(subject.held_back))[:_ROWS])
    augmented = augmentation_of(subject.task, seed=3)(held, sample=0, part=0)
    if subject.task.kind != "regression" or held.target.ndim != 1 or len(held) < _LEAST:
        return None
    if not torch.equal(held.target, augmented.target):
        return None
    own, moved = (_answers(subject, plain().model, each) for each in (held, augmented))
    left = _unexplained(own, held.target)
    shift = float((moved - own).square().mean().sqrt() / own.std().clamp(min=1e-12))
    if left > 1 - _KNOWS or shift < _RATHER_MOVED:
        return None
    longer = _answers(subject, longer_training(subject), held)
    worse = _unexplained(longer, held.target) / max(left, 1e-6)
    if worse < _WORSE:
        return None
    return Harm(
        said="augment moves the answers of a network that knows raw examples by "
        f"{shift:.2f} of their deviation and leaves the targets; trained with it, {worse:.1f} "
        "times as much of the held-back variance is left unexplained as without, in three times "
        "the steps",
        advice="change the target where what it is told by changes",
        measured=shift,
        limit=_MOVED,
        broken=shift > _MOVED,
    )


def _labels_moved(subject: Subject, plain: Callable[[], ShortTraining]) -> Harm | None:
    """The same, of labels: answers change, and raw examples are known worse for it."""
    held = subject.held_back.take(order(seed=7, epoch=0, count=len(subject.held_back))[:_ROWS])
    augmented = augmentation_of(subject.task, seed=3)(held, sample=0, part=0)
    sequence, target = subject.task.kind == "sequence", held.target
    if len(held) < _LEAST or target.ndim != (2 if sequence else 1):
        return None
    if not torch.equal(target, augmented.target):
        return None
    counts = target != PADDING
    model = plain().model
    own, moved = (_said(subject, model, each)[counts] for each in (held, augmented))
    wrong = float((own != target[counts].long()).double().mean())
    changed = float((own != moved).double().mean())
    least = max(_POSITIONS, 2 * wrong) if sequence else _CHANGED
    if wrong > _WRONG or changed < least:
        return None
    longer = longer_training(subject)
    known, learned = (unit_losses_of(subject, each, held) for each in (model, longer))
    lost = learned - known
    few = held.take(slice(0, _CONSTANT))
    with torch.no_grad():
        outputs = outputs_of(model, few, device=subject.device)
    constant = best_constant(subject.task, outputs, few)
    gained = float(subject.loss(constant, few)) - float(known.mean())
    error = _ERRORS * float(lost.std()) / len(lost) ** 0.5
    if not float(lost.mean()) > max(error, _LOST * gained, 0.0):
        return None
    later = float((_said(subject, longer, held)[counts] != target[counts]).double().mean())
    if later < wrong + _MORE_WRONG:
        return None
    what = "positions" if sequence else "examples"
    return Harm(
        said="augment changes the answers of a network that knows raw examples in "
        f"{changed:.0%} of the {what} and leaves the targets; trained with it, held-back examples "
        f"as they are lose {float(learned.mean()):.4g}, in three times the steps, where they lose "
        f"{float(known.mean()):.4g} without",
        advice="change the target where what it is told by changes, or leave that as it is",
        measured=changed,
        limit=least,
        broken=True,
    )


def _said(subject: Subject, model: nn.Module, examples: Examples) -> Tensor:
    """Return the answers: classes, shaped as the target."""
    predicted = subject.task.predict(outputs_of(model, examples, device=subject.device))
    if subject.task.kind == "binary":
        return (predicted.reshape(examples.target.shape) > 0.5).long()
    return predicted.argmax(-1)


def _answers(subject: Subject, model: nn.Module, examples: Examples) -> Tensor:
    outputs = outputs_of(model, examples, device=subject.device)
    return subject.task.predict(outputs).double().flatten()


def _unexplained(answers: Tensor, target: Tensor) -> float:
    """Return the share of the target's variance that answers, in whatever unit, leave."""
    both = torch.corrcoef(torch.stack([answers, target.double()]))[0, 1]
    return 1 - float(torch.nan_to_num(both)) ** 2
