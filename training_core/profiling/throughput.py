"""How fast steps of one batch size are, and what they wait for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import nn

from training_core.augmentation import augmentation_of
from training_core.examples import Examples
from training_core.feeds.batches import Sharing
from training_core.feeds.memory import MemoryFeed
from training_core.optim.optimisers import build_optimisers
from training_core.precision import choose_precision
from training_core.settings import TrainingSettings
from training_core.telemetry.memory import peak_bytes

ENOUGH = 0.9  # of the best throughput: the knee
_WARM_UP = 2


@dataclass(frozen=True)
class Speed:
    """Of one batch size, medians over several steps.

    Attributes:
        seconds: A whole step: feed, augmentation, forward, backward, update.
        waiting: Of these, the feed's and the augmentation's.
        bytes_more: Growth of the process's or the GPU's peak memory; 0: it fitted into what an
            earlier size had taken.
    """

    batch_size: int
    seconds: float
    waiting: float
    bytes_more: int

    @property
    def examples_per_second(self) -> float:
        return self.batch_size / self.seconds


def knee(speeds: Sequence[Speed]) -> Speed:
    """Return the smallest size that is nearly as fast as the fastest."""
    best = max(speed.examples_per_second for speed in speeds)
    ascending = sorted(speeds, key=lambda speed: speed.batch_size)
    return next(s for s in ascending if s.examples_per_second >= ENOUGH * best)


def speed_of(
    batch_size: int,
    *,
    task: Any,
    model: nn.Module,
    examples: Examples,
    training: TrainingSettings,
    device: torch.device,
    seconds: float,
) -> Speed:
    """Take training steps, at least three, for so many seconds.

    Args:
        batch_size: Examples a step, at most as many as there are.
        task: Gives the loss and the augmentation.
        model: Trained, and worth nothing afterwards.
        examples: Trained on, in memory.
        training: As it is planned.
        device: Where; its precision is chosen there.
        seconds: To measure for.
    """
    elsewhere = device.type == "cpu" and training.device != "cpu"  # no tf32 here
    precision = choose_precision("auto" if elsewhere else training.precision, device)
    model = model.to(device).train()
    optimisers = build_optimisers(model, training.optimiser)
    augment = augmentation_of(task, seed=0)
    wait: Callable[[], None] = torch.cuda.synchronize if device.type == "cuda" else _nothing
    sharing = Sharing.of(batch_size=batch_size, microbatches=1, rank=0, world_size=1, seed=0)
    # a short last batch may have one row, which BatchNorm cannot normalise
    full = len(examples) // batch_size * batch_size
    feed = MemoryFeed(examples.take(slice(0, full)))
    batches = feed.steps(sharing, samples=0)
    steps: list[tuple[float, float]] = []
    before, deadline = peak_bytes(device), time.monotonic() + seconds
    while len(steps) < _WARM_UP + 3 or time.monotonic() < deadline:
        began = time.perf_counter()
        step = next(batches)
        augmented: Examples = augment(
            step.microbatches[0].examples, sample=step.samples_after, part=0
        ).to(device)
        wait()
        fed = time.perf_counter()
        with precision.autocast():
            outputs = model(**augmented.arrays)
        losses = task.loss(outputs.float(), augmented.target)
        model.zero_grad(set_to_none=True)
        (losses.sum() / step.units).backward()
        for optimiser in optimisers:
            optimiser.step()
        wait()
        steps.append((fed - began, time.perf_counter() - began))
    batches.close()
    counted = steps[_WARM_UP:]
    return Speed(
        batch_size,
        median(whole for _, whole in counted),
        sum(fed for fed, _ in counted) / len(counted),  # now and then a feed cuts several at once
        peak_bytes(device) - before,
    )


def _nothing() -> None:
    pass
