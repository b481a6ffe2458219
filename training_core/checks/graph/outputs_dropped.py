"""Outputs that are thrown away at random in train mode: dropout behind the last layer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from training_core.checks.chance import batch_norms
from training_core.checks.graph.calling import outputs_of
from training_core.examples import Examples

PASSES = 32
ROWS = 32
WIDEST = 256  # outputs of a row looked at
LEAST = 0.04  # of passes: below, too few of 32 to tell chance from a few rows
# Layers before the last one drop too, and where all of few active units are dropped the bias alone
# is left: in some rows often, in others never. Behind the last layer each row is dropped alike.
ROWS_DROPPED = 0.8  # of the share that chance leaves out of a binomial of so many passes
SPREAD = 2.0  # of its variance; a gamma of 32 rows is beyond in 3 of 10,000


@dataclass(frozen=True)
class Dropped:
    """An output that is dropped.

    Attributes:
        place: In the flattened outputs of a row.
        value: What it then is, exactly.
        share: Of the passes.
        error: Five standard errors of it.
    """

    place: int
    value: float
    share: float
    error: float


def outputs_dropped(model: nn.Module, batch: Examples) -> list[Dropped]:
    """Return the outputs that are one same value, in any row, in a random share of passes.

    Never in eval mode: what an activation cuts off is cut off there too.

    Args:
        model: With weights that differ from row to row; its mode changes.
        batch: Rows; the first 32 are taken.
    """
    rows = batch.take(slice(0, ROWS))
    evaluated = _flat(outputs_of(model.eval(), rows))
    model.train()
    for norm in batch_norms(model).values():
        norm.eval()
    first = _flat(outputs_of(model, rows, seed=0))
    if torch.equal(first, _flat(outputs_of(model, rows, seed=1))):
        return []
    passes = torch.stack([_flat(outputs_of(model, rows, seed=seed)) for seed in range(PASSES)])
    found = (_dropped(passes[:, :, k], evaluated[:, k], place=k) for k in range(passes.shape[2]))
    return [each for each in found if each is not None]


def _dropped(passes: Tensor, evaluated: Tensor, *, place: int) -> Dropped | None:
    """Look at one output, [passes, rows]."""
    # mostly 0; another one where something is added or squashed after it
    for value in (torch.tensor(0.0), passes.flatten().mode().values):
        found = _dropped_to(value, passes, evaluated, place=place)
        if found is not None:
            return found
    return None


def _dropped_to(value: Tensor, passes: Tensor, evaluated: Tensor, *, place: int) -> Dropped | None:
    count = passes.shape[1]
    hits = (passes == value).double()
    share = float(hits.mean())
    seen = float((evaluated == value).double().mean())
    if not LEAST <= share <= 1 - LEAST or seen > 0.25 * share or count < 4:
        return None
    by_row = hits.mean(0)
    never = (1 - share) ** len(passes)
    expected = share * (1 - share) / len(passes)
    everywhere = float((by_row > 0).double().mean()) >= ROWS_DROPPED * (1 - never)
    if everywhere and float(by_row.var()) <= SPREAD * expected:
        return Dropped(place, float(value), share, 5 * (expected / count) ** 0.5)
    return None


def _flat(outputs: Tensor) -> Tensor:
    return outputs.reshape(len(outputs), -1)[:, :WIDEST]
