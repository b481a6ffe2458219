"""The order in which the trainer's own feed hands out rows, epoch by epoch."""

from __future__ import annotations

import torch
from torch import Tensor

from training_core.checks.subject import Subject
from training_core.examples import Examples
from training_core.feeds.batches import Sharing
from training_core.feeds.memory import MemoryFeed

_EPOCHS = 3
ORDER_ROWS = 4096  # of the sample: an order that repeats shows in few


def batches_of_rows(subject: Subject) -> list[list[Tensor]]:
    """Return the rows of every full batch of three epochs, int64 [batch size] each.

    The feed is the trainer's and gets the number of each row instead of the row, so what comes out
    is the order itself. Batches are the planned ones, or so small that there are at least eight.
    """
    count = min(len(subject.examples), ORDER_ROWS)
    size = max(1, min(subject.batch_size, count // 8))
    numbers = torch.arange(count)
    feed = MemoryFeed(Examples({"row": numbers}, numbers))
    seed = subject.training.seed
    sharing = Sharing.of(batch_size=size, microbatches=1, rank=0, world_size=1, seed=seed)
    epochs: list[list[Tensor]] = [[]]
    for step in feed.steps(sharing, samples=0):
        rows = step.microbatches[0].examples.arrays["row"].clone()
        if len(rows) == size:
            epochs[-1].append(rows)
        if step.samples_after % count == 0:
            if len(epochs) == _EPOCHS:
                break
            epochs.append([])
    return epochs


def batch_means(values: Tensor, batches: list[Tensor]) -> Tensor:
    """Return the mean of a value by row over each batch, float64 [batches]."""
    return torch.stack([values[rows].mean() for rows in batches])


def repeats(one: Tensor, other: Tensor) -> float:
    """Return the correlation of two epochs' batch means; 0 where they do not vary."""
    length = min(len(one), len(other))
    one, other = one[:length] - one[:length].mean(), other[:length] - other[:length].mean()
    size = float(one.norm() * other.norm())
    return float((one * other).sum()) / size if size > 0 else 0.0


def unmixed(values: Tensor, batches: list[Tensor]) -> float:
    """Return the variance of batch means over what it is where rows are mixed: about 1 there."""
    expected = float(values.var()) / len(batches[0])
    means = batch_means(values, batches)
    return float(means.var()) / expected if expected > 0 and len(means) > 1 else 0.0
