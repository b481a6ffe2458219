"""The loss that is trained, where it is another than the one that is evaluated."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F  # noqa: N812 (the field's name for it)
from torch import Tensor

from training_core.distillation.settings import DistillationSettings
from training_core.errors import ConfigurationError
from training_core.evaluation import Objective
from training_core.examples import Examples
from training_core.regularisation.settings import RegularisationSettings
from training_core.task import (
    PADDING,
    BinaryTask,
    MulticlassTask,
    MultilabelTask,
    SequenceTask,
)

Loss = Callable[[Tensor, Tensor], Tensor]


def loss_of(
    task: Objective,
    settings: RegularisationSettings,
    distillation: DistillationSettings | None = None,
) -> Callable[[Tensor, Examples], Tensor]:
    """Return what gives the loss of each example of a training step, float [N].

    Raises:
        ConfigurationError: The task's labels cannot be smoothed, or mixed.
    """
    if distillation is not None and distillation.teacher != "none":
        from training_core.distillation.loss import student_loss

        return student_loss(loss_of(task, settings), task, distillation)

    def plain(outputs: Tensor, examples: Examples) -> Tensor:
        return task.loss(outputs, examples.target)

    smoothed = smoothed_loss(task, settings.label_smoothing) if settings.label_smoothing else None
    if settings.mixes:
        from training_core.regularisation.mixing import mixed_loss

        return mixed_loss(smoothed or task.loss, task, settings)
    if smoothed is not None:
        return lambda outputs, examples: smoothed(outputs, examples.target)
    return plain


def smoothed_loss(task: Objective, share: float) -> Loss:
    """Return the loss with a share of each label spread evenly over all classes.

    That is (1 - share) times the loss of the label, plus `share` times the mean of the losses that
    each class would have: Szegedy et al. 2016, "Rethinking the Inception Architecture", section 7.
    A loss of the task's own is asked once for each class.

    Raises:
        ConfigurationError: The task has no classes, or too many to be asked for one by one.
    """
    kind, own = getattr(task, "kind", None), getattr(type(task), "loss", None)
    if kind in ("binary", "multilabel"):
        if own in (BinaryTask.loss, MultilabelTask.loss):  # linear in the target
            return lambda outputs, target: task.loss(outputs, target * (1 - share) + share / 2)
        return lambda outputs, target: (
            (1 - share) * task.loss(outputs, target)
            + share / 2 * (task.loss(outputs, target * 0) + task.loss(outputs, target * 0 + 1))
        )
    if kind == "multiclass":
        if own is MulticlassTask.loss:
            return lambda outputs, target: F.cross_entropy(
                outputs, target, reduction="none", label_smoothing=share
            )
        return lambda outputs, target: _asked_for_each(task, outputs, target, share)
    if kind == "sequence" and own is SequenceTask.loss:

        def of_tokens(outputs: Tensor, target: Tensor) -> Tensor:
            losses = F.cross_entropy(
                outputs.flatten(0, 1),
                target.flatten(),
                reduction="none",
                ignore_index=PADDING,
                label_smoothing=share,
            )
            return losses.view(target.shape).sum(1)

        return of_tokens
    what = f"a {kind} task" if kind else f"{type(task).__name__}, which says no kind"
    what += " with a loss of its own" if kind == "sequence" else ""
    raise ConfigurationError(
        f"training.regularisation.label_smoothing is set, and this is {what}",
        hint="leave it out, or smooth in the task's own loss",
    )


def _asked_for_each(task: Objective, outputs: Tensor, target: Tensor, share: float) -> Tensor:
    classes = outputs.shape[1]
    losses = task.loss(outputs, target) * (1 - share)
    for each in range(classes):
        losses = losses + task.loss(outputs, target * 0 + each) * (share / classes)
    return losses
