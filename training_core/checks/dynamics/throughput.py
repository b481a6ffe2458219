"""How fast steps of several batch sizes are, on the sample that is checked."""

from __future__ import annotations

import time

import torch

from training_core.checks.subject import Subject
from training_core.evaluation import evaluate
from training_core.profiling.throughput import Speed as Speed
from training_core.profiling.throughput import speed_of


def device_of(subject: Subject) -> torch.device:
    """Return the planned device where this machine has it, else the CPU."""
    planned = subject.training.device
    return torch.device("cuda" if planned != "cpu" and torch.cuda.is_available() else "cpu")


def measure(subject: Subject, batch_size: int, *, seconds: float) -> Speed:
    """Take training steps, at least three, for so many seconds; the model is thrown away."""
    return speed_of(
        batch_size,
        task=subject.task,
        model=subject.build(0),
        examples=subject.examples,
        training=subject.training,
        device=device_of(subject),
        seconds=seconds,
    )


def evaluation_seconds(subject: Subject, *, rows: int) -> float:
    """Return what one evaluation of so many rows takes, from one of at most 1,024."""
    device = device_of(subject)
    model = subject.build(0).to(device)
    some = subject.held_back.take(slice(0, 1024))
    began = time.perf_counter()
    evaluate(subject.task, model, some)
    return (time.perf_counter() - began) * rows / max(1, len(some))
