"""Evaluation: each example counted exactly once, on any number of ranks, and no trace left."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from training_core.examples import Examples
from training_core.parallel import SingleProcess, Strategy
from training_core.task import Task

_ROWS = 8192  # rows at once; large enough that calls cost nothing, small enough for memory


@torch.no_grad()
def outputs_of(model: nn.Module, examples: Examples, *, device: torch.device) -> Tensor:
    """Return the model's outputs in eval mode, float32 [N] on the CPU."""
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


def evaluate(
    task: Task, model: nn.Module, examples: Examples, *, strategy: Strategy | None = None
) -> dict[str, float]:
    """Return the mean of the loss and of every metric over all examples.

    Ranks take every world-size-th example, without padding, and add up sums in double precision.

    Args:
        task: Gives loss and metrics.
        model: The user's module (not wrapped: no collective may hide in it).
        examples: The same on every rank.
        strategy: The processes that share the work; none: this one alone.
    """
    strategy = strategy or SingleProcess(next(model.parameters()).device)
    mine = examples.take(slice(strategy.rank, None, strategy.world_size))
    outputs = outputs_of(model, mine, device=strategy.device)
    values = {"loss": task.loss(outputs, mine.target), **task.metrics(outputs, mine.target)}
    sums = [value.double().sum() for value in values.values()]
    packed = torch.stack([*sums, torch.tensor(float(len(mine)), dtype=torch.float64)])
    packed = strategy.sum_(packed.to(strategy.device)).cpu()
    means = packed[:-1] / packed[-1]
    return {name: float(mean) for name, mean in zip(values, means, strict=True)}
