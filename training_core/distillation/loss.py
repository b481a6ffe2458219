"""The loss of a student: partly that of the labels, partly its distance from a teacher.

    (1 - weight) · loss of the label + weight · T² · KL(teacher at T ‖ student at T)

Hinton, Vinyals & Dean 2015, arXiv:1503.02531. With T² the gradients of both parts keep their
proportion whatever the temperature. The divergence differs from their cross-entropy by the
teacher's entropy, which no weight of the student moves; it is 0 where both agree. Of numbers it is
the task's own loss with the teacher's number for a label: squared error, unless the task has
another.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812 (the field's name for it)
from torch import Tensor

from training_core.distillation.settings import DistillationSettings
from training_core.errors import ConfigurationError
from training_core.evaluation import Objective
from training_core.examples import Examples
from training_core.task import PADDING, Kind

_LEAST = 1e-7  # a probability's distance from 0, and of one by itself from 1
Loss = Callable[[Tensor, Examples], Tensor]


def taught_logits(predictions: Tensor, kind: Kind) -> Tensor:
    """Return a teacher's predictions in the form that examples carry, float32.

    Args:
        predictions: As the kind of task has them: probabilities, or numbers.
        kind: Of task.

    Returns:
        The same shape: logits (of several classes up to a constant), or the numbers.
    """
    wide = predictions.double()
    if kind == "regression":
        return wide.float()
    if kind in ("binary", "multilabel"):
        return torch.logit(wide, eps=_LEAST).float()
    return wide.clamp(min=_LEAST).log().float()


def student_loss(of_labels: Loss, task: Objective, settings: DistillationSettings) -> Loss:
    """Return the loss of examples that carry a teacher's logits.

    Args:
        of_labels: The loss that would be trained without a teacher.
        task: Its kind says what outputs are.
        settings: Weight and temperature.

    Raises:
        ConfigurationError: The task says no kind.
    """
    kind: Kind | None = getattr(task, "kind", None)
    if kind is None:
        raise ConfigurationError(
            f"training.distillation is set, and {type(task).__name__} says no kind",
            hint="give the task its kind: what its outputs mean decides how they are compared",
        )

    def apart(outputs: Tensor, examples: Examples) -> Tensor:
        teacher = examples.teacher
        if teacher is None:
            raise ConfigurationError(
                "training.distillation is set, and the examples carry no teacher's predictions",
                hint="give them to Examples(…, teacher=…): see training_core.distillation.loss",
            )
        if teacher.shape != outputs.shape:
            raise ConfigurationError(
                f"the teacher's predictions are of the shape {list(teacher.shape[1:])}, and the "
                f"network's outputs of {list(outputs.shape[1:])}",
                hint="a teacher has to answer the same question: the same classes, or positions",
            )
        if kind == "regression":
            return task.loss(outputs, teacher)
        return divergence(outputs, teacher, examples.target, kind, settings.temperature)

    def loss(outputs: Tensor, examples: Examples) -> Tensor:
        return torch.lerp(of_labels(outputs, examples), apart(outputs, examples), settings.weight)

    return loss


def divergence(
    student: Tensor, teacher: Tensor, target: Tensor, kind: Kind, temperature: float
) -> Tensor:
    """Return T² times the divergence of softened predictions, float [N].

    The mean over labels, the sum over the tokens that count: as the kind's own loss has it.

    Args:
        student, teacher: Logits of the same shape.
        target: Of a sequence, says which positions count.
        kind: Not regression.
        temperature: T.
    """
    student, teacher = student / temperature, teacher / temperature
    squared = temperature * temperature
    if kind in ("binary", "multilabel"):
        sure = torch.sigmoid(teacher)
        each = sure * (F.logsigmoid(teacher) - F.logsigmoid(student))
        each = each + (1 - sure) * (F.logsigmoid(-teacher) - F.logsigmoid(-student))
        return squared * (each.mean(1) if each.ndim > 1 else each)
    each = F.kl_div(
        student.log_softmax(-1), teacher.log_softmax(-1), reduction="none", log_target=True
    ).sum(-1)
    if kind == "sequence":
        each = (each * (target != PADDING)).sum(1)
    return squared * each
