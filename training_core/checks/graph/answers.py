"""Where among the inputs of a sequence task the answers stand."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from training_core.examples import Examples
from training_core.task import PADDING, Task

ROWS = 2_000  # looked at
AGREEMENT = 0.995  # tokens that are the input at that distance; text by chance: some 0.1
PAIRS = 50  # fewer say nothing


@dataclass(frozen=True)
class Answer:
    """An input array that holds what has to be predicted.

    Attributes:
        array: Its name.
        lead: The answer of output t is at input position t + lead; 1 in a language model.
        shift: The loss compares output t with target t - shift; 0 as a rule.
        outputs: Output positions.
        agreement: Share of the targets that are there.
    """

    array: str
    lead: int
    shift: int
    outputs: int
    agreement: float


def answers_in(examples: Examples, task: Task, *, outputs: torch.Size) -> list[Answer]:
    """Return the int arrays [N, T] that hold the target, at the distance where they do.

    Indices may differ by a constant, such as the places of special tokens. Where the data repeat
    themselves and several distances agree, the next token is meant, else the nearest one.

    Args:
        examples: Of a sequence task.
        task: For its loss.
        outputs: Shape of one row's outputs: positions, vocabulary.
    """
    some = examples.take(slice(0, ROWS))
    target = some.target
    if target.ndim != 2 or len(outputs) != 2 or not (target != PADDING).any():
        return []
    shift = shift_of_loss(task, target, outputs=outputs)
    answers = []
    for name, array in some.arrays.items():
        if array.ndim != 2 or array.is_floating_point() or array.dtype == torch.bool:
            continue
        agreements = {
            offset: _agreement(array.long(), target, offset)
            for offset in range(1 - target.shape[1], array.shape[1])
        }
        leads = {k - shift: value for k, value in agreements.items() if value >= AGREEMENT}
        if leads:
            lead = 1 if 1 in leads else min(leads, key=lambda k: (abs(k), -k))
            answers.append(Answer(name, lead, shift, outputs[0], leads[lead]))
    return answers


def shift_of_loss(task: Task, target: Tensor, *, outputs: torch.Size) -> int:
    """Return how many positions after a target the output stands that answers for it.

    A loss may cut its last output and its first target, and so shift by one itself. What says so is
    the gradient: which outputs' change with which target.
    """
    real = (target != PADDING).sum(1)
    row = target[real.argmax()].clone()
    places = (row != PADDING).nonzero().flatten()
    place = int(places[len(places) // 2])
    other = row.clone()
    other[place] = (row[place] + 1) % outputs[1]
    gradients = []
    for each in (row, other):
        logits = torch.zeros(1, *outputs, requires_grad=True)
        loss = task.loss(logits, each.unsqueeze(0)).sum()
        gradients.append(torch.autograd.grad(loss, logits)[0][0])
    moved = (gradients[0] - gradients[1]).abs().sum(1)
    return int(moved.argmax()) - place if float(moved.max()) > 0 else 0


def real_lengths(tokens: Tensor) -> Tensor:
    """Return how many tokens come before the padding, int64 [N].

    Padding is what is repeated to a row's end, and that token at the end of any other row.
    """
    length, last = tokens.shape[1], tokens[:, -1]
    before = ((tokens != last[:, None]) * torch.arange(1, length + 1)).amax(1)
    padded = length - before > 1
    if padded.any():
        padded |= last == last[padded].mode().values
    return torch.where(padded, before, length)


def _agreement(inputs: Tensor, target: Tensor, offset: int) -> float:
    """Return the share of targets t that are the input at t + offset, up to a constant.

    Only places that both have: the input may lack the last token, which is only ever predicted.
    """
    first, last = max(0, -offset), min(target.shape[1], inputs.shape[1] - offset)
    if last <= first:
        return 0.0
    places = torch.arange(first, last)
    ends = torch.where(target == PADDING, 0, torch.arange(1, target.shape[1] + 1)).amax(1)
    ends = torch.minimum(ends, real_lengths(target))
    wanted, found = target[:, first:last], inputs[:, first + offset : last + offset]
    counts = (wanted != PADDING) & (places < ends[:, None])
    counts &= places + offset < real_lengths(inputs)[:, None]
    differences = (found - wanted)[counts]
    if len(differences) < PAIRS or len(torch.unique(wanted[counts])) < 2:
        return 0.0
    usual = differences.mode().values
    return float((differences == usual).double().mean())
