"""How fast steps of several batch sizes are, and what they wait for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch

from training_core.augmentation import augmentation_of
from training_core.checks.subject import Subject
from training_core.evaluation import evaluate
from training_core.examples import Examples
from training_core.feeds.batches import Sharing
from training_core.feeds.memory import MemoryFeed
from training_core.optim.optimisers import build_optimisers
from training_core.precision import choose_precision
from training_core.telemetry.memory import peak_bytes

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


def device_of(subject: Subject) -> torch.device:
    """Return the planned device where this machine has it, else the CPU."""
    planned = subject.training.device
    return torch.device("cuda" if planned != "cpu" and torch.cuda.is_available() else "cpu")


def measure(subject: Subject, batch_size: int, *, seconds: float) -> Speed:
    """Take training steps, at least three, for so many seconds; the model is thrown away."""
    device = device_of(subject)
    elsewhere = device.type == "cpu" and subject.training.device != "cpu"  # no tf32 here
    precision = choose_precision("auto" if elsewhere else subject.training.precision, device)
    model = subject.build(0).to(device).train()
    optimisers = build_optimisers(model, subject.training.optimiser)
    augment = augmentation_of(subject.task, seed=0)
    wait: Callable[[], None] = torch.cuda.synchronize if device.type == "cuda" else _nothing
    sharing = Sharing.of(batch_size=batch_size, microbatches=1, rank=0, world_size=1, seed=0)
    # a short last batch may have one row, which BatchNorm cannot normalise
    full = len(subject.examples) // batch_size * batch_size
    feed = MemoryFeed(subject.examples.take(slice(0, full)))
    batches = feed.steps(sharing, samples=0)
    steps: list[tuple[float, float]] = []
    before, deadline = peak_bytes(device), time.monotonic() + seconds
    while len(steps) < _WARM_UP + 3 or time.monotonic() < deadline:
        began = time.perf_counter()
        step = next(batches)
        examples: Examples = augment(
            step.microbatches[0].examples, sample=step.samples_after, part=0
        ).to(device)
        wait()
        fed = time.perf_counter()
        with precision.autocast():
            outputs = model(**examples.arrays)
        losses = subject.task.loss(outputs.float(), examples.target)
        model.zero_grad(set_to_none=True)
        (losses.sum() / step.units).backward()  # type: ignore[no-untyped-call]
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


def evaluation_seconds(subject: Subject, *, rows: int) -> float:
    """Return what one evaluation of so many rows takes, from one of at most 1,024."""
    device = device_of(subject)
    model = subject.build(0).to(device)
    some = subject.held_back.take(slice(0, 1024))
    began = time.perf_counter()
    evaluate(subject.task, model, some)
    return (time.perf_counter() - began) * rows / max(1, len(some))


def _nothing() -> None:
    pass
