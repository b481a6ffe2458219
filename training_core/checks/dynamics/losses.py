"""Losses of single examples under a network in eval mode."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from training_core.checks.subject import Subject
from training_core.evaluation import outputs_of
from training_core.examples import Examples

_NUMBERS = 4_000_000  # outputs at once: 16 MB, whatever the length and the vocabulary


@torch.no_grad()
def losses_of(subject: Subject, model: nn.Module, examples: Examples) -> Tensor:
    """Return each example's loss over the units of an average example, float64 [N].

    So their mean is the mean loss a unit.
    """
    rows = rows_at_once(subject, model, examples)
    pieces = []
    for start in range(0, len(examples), rows):
        piece = examples.take(slice(start, start + rows))
        outputs = outputs_of(model, piece, device=subject.device)
        pieces.append(subject.task.loss(outputs, piece.target).double())
    losses = torch.cat(pieces)
    return losses if examples.units is None else losses / examples.units.double().mean()


def rows_at_once(subject: Subject, model: nn.Module, examples: Examples) -> int:
    """Return how many rows' outputs fit into a little memory, at least one."""
    one = outputs_of(model, examples.take(slice(0, 1)), device=subject.device).numel()
    return max(1, _NUMBERS // max(1, one))
