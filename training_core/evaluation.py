"""Evaluation: each example counted exactly once, on any number of ranks, and no trace left."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from training_core.examples import Examples
from training_core.parallel.single import SingleProcess
from training_core.parallel.strategy import Strategy

_ROWS = 8192  # rows at once at most; enough that calls cost nothing, few enough for memory


class Objective(Protocol):
    """What training and evaluation need of a task."""

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        """Return the loss of each example, float [N]; summed over its units, if it has several."""

    def metrics(self, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Return per-example metrics by name, each float [N]."""


@torch.no_grad()
def outputs_of(model: nn.Module, examples: Examples, *, device: torch.device) -> Tensor:
    """Return the model's outputs in eval mode, float32 on the CPU, first dimension N."""
    was_training = model.training
    model.eval()
    try:
        pieces = [
            model(**examples.take(slice(i, i + _ROWS)).to(device).arrays).float().cpu()
            for i in range(0, len(examples), _ROWS)
        ]
    finally:
        model.train(was_training)
    return torch.cat(pieces) if pieces else torch.zeros(0)


@torch.no_grad()
def evaluate(
    task: Objective,
    model: nn.Module,
    examples: Examples,
    *,
    strategy: Strategy | None = None,
    autocast: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> dict[str, float]:
    """Return the mean of the loss and of every metric over all examples.

    The examples are cut into the same pieces whatever the number of ranks; each rank takes every
    world-size-th piece, and the sums of all pieces, in double precision, are added up in their
    order: so the result does not depend on the ranks either, bit for bit. A rank without a piece in
    the last round takes part with one that counts for nothing, since a sharded model communicates.

    Args:
        task: Gives loss and metrics.
        model: The user's module (not wrapped in DDP: no collective may hide in it).
        examples: The same on every rank.
        strategy: The processes that share the work; none: this one alone.
        autocast: What the model, and only the model, is called in.
    """
    strategy = strategy or SingleProcess(next(model.parameters()).device)
    rows = max(1, min(_ROWS, -(-len(examples) // 8)))
    pieces = -(-len(examples) // rows)
    sums: Tensor | None = None
    names: list[str] = []
    was_training = model.training
    model.eval()
    try:
        for first in range(0, pieces, strategy.world_size):
            piece = first + strategy.rank
            counts = piece < pieces
            start = piece * rows if counts else 0
            part = examples.take(slice(start, start + rows)).to(strategy.device)
            with autocast():
                outputs = model(**part.arrays)
            outputs = outputs.float()
            values = {
                "loss": task.loss(outputs, part.target),
                **task.metrics(outputs, part.target),
            }
            if sums is None:
                names = list(values)
                shape = (pieces, len(names) + 1)
                sums = torch.zeros(shape, dtype=torch.float64, device=strategy.device)
            if counts:
                units = float(len(part)) if part.units is None else part.units.double().sum()
                for column, value in enumerate(values.values()):
                    sums[piece, column] = value.double().sum()
                sums[piece, -1] = units
    finally:
        model.train(was_training)
    if sums is None:
        return {}
    total = strategy.sum_(sums).cpu().cumsum(0)[-1]  # in order of the pieces
    return {name: float(value / total[-1]) for name, value in zip(names, total, strict=False)}
