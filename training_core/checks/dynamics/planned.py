"""The whole training as it is planned, where it is short enough to be made at once."""

from __future__ import annotations

import time
from weakref import WeakKeyDictionary

import torch
from torch import nn

from training_core.checks.machinery.small_runs import short, state_of, trainer
from training_core.checks.subject import Subject
from training_core.errors import TrainingFailed

_SECONDS = 15.0
_SHARE = 0.4  # of the time that is left
_EVALUATIONS = 10

_made: WeakKeyDictionary[Subject, nn.Module | None] = WeakKeyDictionary()


def trained_as_planned(subject: Subject) -> nn.Module | None:
    """Return the network of the planned training, in the state of its best evaluation.

    The real trainer takes the planned steps, with schedule, weight decay and augmentation, on the
    rows of the sample. It is made when it is asked for first, and shared: not to be changed.

    Returns:
        None where it takes too long, or fails.
    """
    if subject not in _made:
        _made[subject] = _train(subject)
    return _made[subject]


def _train(subject: Subject) -> nn.Module | None:
    steps, seconds = subject.steps, min(_SECONDS, _SHARE * subject.seconds_left)
    if steps * subject.seconds_a_step > seconds:
        return None
    rows, size = len(subject.examples), subject.training.batch_size
    # a single row in the last batch of an epoch is the sample's fault, and stops a BatchNorm
    examples = subject.examples.take(slice(0, rows - (rows % size == 1 and rows > 1)))
    deadline = time.monotonic() + 2 * seconds  # evaluations come on top, and other processes
    model = subject.build(0)
    lowest, best = float("inf"), state_of(model)
    metric = subject.training.checkpoints.metric

    def keep_the_best(step: int, metrics: dict[str, float]) -> None:
        nonlocal lowest, best
        if (value := metrics.get(metric, metrics["loss"])) < lowest:
            lowest, best = value, state_of(model)

    every = subject.training.evaluate_every or max(1, steps // _EVALUATIONS)
    try:
        outcome = trainer(
            subject.task,
            model,
            examples,
            validation=subject.held_back,
            settings=short(subject.training, steps=steps, evaluate_every=every, log_every=every),
            on_evaluation=keep_the_best,
            should_stop=lambda: time.monotonic() > deadline,
        ).fit()
    except TrainingFailed:  # what diverges is other checks' to name
        return None
    if outcome.steps < steps:
        return None
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            tensor.copy_(best[name])
    return model
