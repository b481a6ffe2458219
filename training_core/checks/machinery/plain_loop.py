"""A training loop in plain torch, and the mistakes that a real one may make."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from training_core.checks.machinery.plain_optimisers import Decays, plain_optimisers
from training_core.checks.machinery.plain_schedule import planned_momentum, planned_rate
from training_core.evaluation import Objective
from training_core.examples import Examples
from training_core.feeds.order import order
from training_core.optim.flat import FlatParameters
from training_core.settings import TrainingSettings


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """What is different from the plain loop; nothing, as it is made.

    Attributes:
        zeroes: Gradients are zeroed after each update.
        only_last: Only the last microbatch's gradient counts.
        factor: The gradient is multiplied with it.
        decays: What weight decay is applied to.
        clips: The norm of the gradient, each of its values, each example's loss, or nothing.
        later: The rate is that of so many steps later.
        rate: Follows the schedule, or stays at the peak.
        order: A new one each epoch, the first epoch's always, or that of the rows.
        evaluating: The model is in eval mode: never, always, or after the first evaluation.
        remembers: The optimiser keeps its state from step to step.
    """

    zeroes: bool = True
    only_last: bool = False
    factor: float = 1.0
    decays: Decays = "matrices"
    clips: Literal["norm", "values", "losses", "nothing"] = "norm"
    later: int = 0
    rate: Literal["schedule", "peak"] = "schedule"
    order: Literal["new", "first", "rows"] = "new"
    evaluating: Literal["never", "always", "after evaluation"] = "never"
    remembers: bool = True


NONE = Mistake()


@dataclass(frozen=True)
class PlainRun:
    """What a plain training did.

    Attributes:
        losses: Mean loss a unit of each step, before its update.
        norms: Norm of each step's gradient, before clipping.
    """

    losses: list[float]
    norms: list[float]


def plain_training(
    task: Objective,
    model: nn.Module,
    examples: Examples,
    training: TrainingSettings,
    *,
    steps: int,
    mistake: Mistake = NONE,
) -> PlainRun:
    """Train a model, which is changed, for `steps` steps that are the whole run.

    Where the trainer has all gradients in one buffer (`FlatParameters`), a parameter that takes no
    part in a step has a gradient of zeros there, and so it has here: its weights decay.

    Args:
        task: Gives the loss.
        model: On the CPU.
        examples: Of an epoch.
        training: Optimiser, schedule, batch size, accumulation and seed are followed.
        steps: At least 1.
        mistake: To make on purpose.
    """
    optimisers = plain_optimisers(model, training.optimiser, decays=mistake.decays)
    run = PlainRun([], [])
    buffered = FlatParameters.fits(model)
    for parameter in model.parameters():
        if buffered and parameter.requires_grad:
            parameter.grad = torch.zeros_like(parameter)
    for step, rows in enumerate(_batches(len(examples), training, steps=steps, mistake=mistake)):
        late = mistake.evaluating == "after evaluation" and step >= training.evaluate_every
        model.train(not (late or mistake.evaluating == "always"))
        _set_rate(optimisers, training, steps=steps, step=step, mistake=mistake)
        run.losses.append(_gradients(task, model, examples.take(rows), training, mistake))
        run.norms.append(_clip(model, training.optimiser.clip_norm, mistake))
        for optimiser in optimisers:
            optimiser.step()
            if mistake.zeroes:
                optimiser.zero_grad(set_to_none=not buffered)
            if not mistake.remembers:
                optimiser.state.clear()
    return run


def _batches(
    count: int, training: TrainingSettings, *, steps: int, mistake: Mistake
) -> Iterator[Tensor]:
    """Yield the rows of each step; an epoch's last step is short."""
    done = epoch = 0
    while True:
        drawn = 0 if mistake.order == "first" else epoch
        rows = order(seed=training.seed, epoch=drawn, count=count)
        rows = torch.arange(count) if mistake.order == "rows" else rows
        for batch in torch.split(rows, training.batch_size):
            if done == steps:
                return
            yield batch
            done += 1
        epoch += 1


def _gradients(
    task: Objective,
    model: nn.Module,
    batch: Examples,
    training: TrainingSettings,
    mistake: Mistake,
) -> float:
    """Add the gradient of a batch's mean loss a unit to the weights; return that loss."""
    units = len(batch) if batch.units is None else batch.units.sum()
    total = 0.0
    for part in range(min(training.accumulation, len(batch))):
        mine = batch.take(slice(part, None, training.accumulation))
        losses = task.loss(model(**mine.arrays).float(), mine.target)
        total += float(losses.detach().double().sum())
        if mistake.clips == "losses":
            losses = losses.clamp(max=training.optimiser.clip_norm)
        if mistake.only_last:
            model.zero_grad()
        (losses.sum() / units).backward()  # type: ignore[no-untyped-call]
    for parameter in model.parameters():
        if parameter.grad is not None and mistake.factor != 1:
            parameter.grad.mul_(mistake.factor)
    return total / float(units)


def _clip(model: nn.Module, norm: float, mistake: Mistake) -> float:
    limit = norm if norm and mistake.clips == "norm" else float("inf")
    found = float(nn.utils.clip_grad_norm_(model.parameters(), limit))
    if norm and mistake.clips == "values":
        nn.utils.clip_grad_value_(model.parameters(), norm)
    return found


def _set_rate(
    optimisers: list[torch.optim.Optimizer],
    training: TrainingSettings,
    *,
    steps: int,
    step: int,
    mistake: Mistake,
) -> None:
    place = {"steps": steps, "step": min(steps - 1, max(0, step + mistake.later))}
    rate = planned_rate(training.schedule, training.optimiser, **place)
    momentum = planned_momentum(training.schedule, training.optimiser, **place)
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["lr"] = training.optimiser.lr if mistake.rate == "peak" else rate
            if momentum is not None and "betas" in group:
                group["betas"] = (momentum, group["betas"][1])
            elif momentum is not None and "momentum" in group:
                group["momentum"] = momentum
