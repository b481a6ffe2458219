"""Losses of single examples, taken a few rows at a time: outputs may be as wide as a vocabulary."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from training_core.checks.subject import Subject
from training_core.evaluation import outputs_of
from training_core.examples import Examples
from training_core.feeds.order import order

_NUMBERS = 4_000_000  # outputs at once: 16 MB, whatever the length and the vocabulary


def losses_of(subject: Subject, model: nn.Module, examples: Examples) -> Tensor:
    """Return each example's loss under a network in eval mode, float64 [N]; summed over units."""
    return losses_by(
        subject,
        lambda piece: outputs_of(model, piece, device=subject.device),
        examples,
        rows=rows_at_once(subject, model, examples),
    )


@torch.no_grad()
def losses_by(
    subject: Subject, predict: Callable[[Examples], Tensor], examples: Examples, *, rows: int
) -> Tensor:
    """Return each example's loss under outputs that are made for so many rows, float64 [N]."""
    losses = []
    for start in range(0, len(examples), rows):
        piece = examples.take(slice(start, start + rows))
        losses.append(subject.task.loss(predict(piece), piece.target).double())
    return torch.cat(losses)


def losses_of_strangers(subject: Subject, model: nn.Module, examples: Examples) -> Tensor:
    """Return `losses_of` with each row's outputs dealt to another row: what they say on average."""

    def dealt(piece: Examples) -> Tensor:
        outputs = outputs_of(model, piece, device=subject.device)
        return outputs[order(seed=1, epoch=0, count=len(piece))]

    return losses_by(subject, dealt, examples, rows=rows_at_once(subject, model, examples))


def unit_losses_of(subject: Subject, model: nn.Module, examples: Examples) -> Tensor:
    """Return `losses_of` over the units of an average example: their mean is that a unit."""
    losses = losses_of(subject, model, examples)
    return losses if examples.units is None else losses / examples.units.double().mean()


def rows_at_once(subject: Subject, model: nn.Module, examples: Examples) -> int:
    """Return how many rows' outputs fit into a little memory, at least one."""
    return rows_of(outputs_of(model, examples.take(slice(0, 1)), device=subject.device))


def rows_of(output: Tensor) -> int:
    """Return the same for the output of one row."""
    return max(1, _NUMBERS // max(1, output.numel()))
