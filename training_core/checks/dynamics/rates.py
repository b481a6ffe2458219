"""Short trainings at several learning rates, from the same weights and on the same batches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from training_core.checks.contract import Curve
from training_core.checks.losses import rows_at_once
from training_core.checks.short_training import train_briefly
from training_core.checks.subject import Subject
from training_core.evaluation import Objective
from training_core.examples import Examples
from training_core.optim.schedules import make_schedule

_ROWS = 256  # of the fixed batch: the mean of a binary loss is then known to some 0.03
_INSTANTS = 12


@dataclass(frozen=True)
class Probe:
    """A short training at one rate, seen on a fixed batch of train rows.

    Attributes:
        factor: The rate, as a multiple of the planned one.
        steps: Optimiser steps after which the batch was looked at; 0 first.
        losses: Of each of its examples, a unit, float64 [steps, N]; in train mode, so that a
            network whose two modes differ is judged by how it learns alone.
    """

    factor: float
    steps: list[int]
    losses: Tensor

    @property
    def curve(self) -> Curve:
        """Mean loss of the fixed batch by step; it ends where the loss is not finite."""
        means = self.losses.mean(1).tolist()
        return [(s, m) for s, m in zip(self.steps, means, strict=True) if m - m == 0]

    @property
    def diverged(self) -> bool:
        """Whether the loss became infinite or NaN."""
        return not bool(torch.isfinite(self.losses.mean(1)).all())

    @property
    def final(self) -> Tensor:
        """Loss of each example towards the end, float64 [N]: the mean of the last instants, since
        weights jitter from step to step."""
        return self.losses[-max(1, len(self.steps) // 4) :].mean(0)

    @property
    def loss(self) -> float:
        """Mean of `final`."""
        return float(self.final.mean())

    def at(self, step: float) -> float:
        """Mean loss after so many steps, between two instants on the line that joins them."""
        for (one, before), (other, after) in pairwise(self.curve):
            if step <= other:
                return before + (after - before) * (step - one) / (other - one)
        return self.curve[-1][1]


def probe(subject: Subject, factor: float, *, steps: int) -> Probe:
    """Train a new model at a multiple of the planned rate and look at a fixed batch meanwhile."""
    fixed = subject.batch(_ROWS, seed=2)
    instants = sorted({round(steps * i / _INSTANTS) for i in range(_INSTANTS + 1)})
    model = subject.build(0)
    fixed = fixed.take(slice(0, rows_at_once(subject, model, fixed)))
    warmup = _Warmup(model, steps=min(_warmup_steps(subject), steps // 4))
    seen = {0: unit_losses(subject.task, model, fixed)}

    def after_step(step: int, trained: nn.Module) -> None:
        warmup.after_step(step)
        if step + 1 in instants:
            seen[step + 1] = unit_losses(subject.task, trained, fixed)

    train_briefly(
        subject.task,
        model,
        subject.examples,
        steps=steps,
        batch_size=subject.batch_size,
        training=subject.training,
        lr_factor=factor,
        after_backward=warmup.after_backward,
        after_step=after_step,
    )
    if steps not in seen:  # it ended early, because the loss cannot be learned from
        seen[steps] = torch.full_like(seen[0], torch.nan)
    return Probe(factor, list(seen), torch.stack(list(seen.values())))


def affordable_steps(subject: Subject, *, most: int, least: int, seconds: float) -> int:
    """Return how many steps can be taken in a time."""
    return int(min(most, max(least, seconds / max(subject.seconds_a_step, 1e-9))))


@torch.no_grad()
def unit_losses(task: Objective, model: nn.Module, examples: Examples) -> Tensor:
    """Return each example's loss over the units that an example has on average, float64 [N].

    In the model's present mode; the random numbers of training and BatchNorm's statistics stay as
    they are.
    """
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(3)  # the same dropout each time
        losses = task.loss(model(**examples.arrays).float(), examples.target).double()
    for name, buffer in model.named_buffers():
        buffer.copy_(buffers[name])
    return losses if examples.units is None else losses / examples.units.double().mean()


def share_of_way(loss: float, probes: dict[float, Probe]) -> float:
    """Return how far a loss is on the way from the start to the best probe's end, at most 1."""
    start = float(probes[1.0].losses[0].mean())
    best = min((p.loss for p in probes.values() if not p.diverged), default=start)
    return (start - loss) / max(start - best, 1e-12) if math.isfinite(loss) else -math.inf


def errors_ahead(one: torch.Tensor, other: torch.Tensor) -> float:
    """Return by how many standard errors the other's losses are lower, row by row."""
    difference = one - other
    if not bool(torch.isfinite(difference).all()):
        return math.inf if bool(torch.isfinite(other).all()) else -math.inf
    error = float(difference.std()) / math.sqrt(len(difference)) if len(difference) > 1 else 0.0
    return float(difference.mean()) / max(error, 1e-12)


def planned_path(subject: Subject) -> float:
    """Return the planned run's length in steps at its peak rate: the sum of its schedule."""
    training, steps = subject.training, subject.steps
    schedule = make_schedule(training.schedule, training.optimiser, steps=steps)
    every = max(1, steps // 1000)
    rates = [schedule.at(step).lr for step in range(0, steps, every)]
    return sum(rates) / len(rates) * steps / training.optimiser.lr


def _warmup_steps(subject: Subject) -> int:
    """Steps that the plan takes to come from 0 to its highest rate."""
    training, steps = subject.training, subject.steps
    schedule = make_schedule(training.schedule, training.optimiser, steps=steps)
    rates = [schedule.at(step).lr for step in range(min(steps, 1000))]
    return rates.index(max(rates))


class _Warmup:
    """Raises the rate evenly over the first steps, as many plans do.

    The update of every optimiser here is proportional to its rate, so a share of the update is a
    share of the rate.
    """

    def __init__(self, model: nn.Module, *, steps: int) -> None:
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._steps, self._before = steps, []  # type: tuple[int, list[Tensor]]

    def after_backward(self, step: int, model: nn.Module) -> None:
        if step < self._steps:
            self._before = [p.detach().clone() for p in self._parameters]

    @torch.no_grad()
    def after_step(self, step: int) -> None:
        if step < self._steps:
            for before, parameter in zip(self._before, self._parameters, strict=True):
                parameter.copy_(torch.lerp(before, parameter, (step + 1) / (self._steps + 1)))
