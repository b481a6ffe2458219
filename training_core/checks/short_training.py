"""Short trainings in plain code, for checks and baselines: no schedule, no checkpoints."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from training_core.augmentation import augmentation_of
from training_core.checks.contract import Curve
from training_core.examples import Examples
from training_core.feeds.order import order
from training_core.optim.optimisers import build_optimisers
from training_core.settings import TrainingSettings
from training_core.task import Task


@dataclass(frozen=True)
class ShortTraining:
    """A model after a few steps.

    Attributes:
        model: Trained, in train mode.
        curve: Loss a unit of each step's batch, before the step; it ends where the loss is not
            finite or cannot be learned from.
    """

    model: nn.Module
    curve: Curve


def train_briefly(
    task: Task,
    model: nn.Module,
    examples: Examples,
    *,
    steps: int,
    batch_size: int,
    training: TrainingSettings,
    seed: int = 0,
    lr_factor: float = 1.0,
    weight_decay: Literal["none", "as planned"] = "none",
    stop_below: float = -math.inf,
    after_backward: Callable[[int, nn.Module], None] = lambda step, model: None,
    after_step: Callable[[int, nn.Module], None] = lambda step, model: None,
) -> ShortTraining:
    """Train at a constant rate, with the planned optimiser, clipping and augmentation.

    Args:
        task: Gives the loss.
        model: Changed.
        examples: Trained on epoch after epoch, in random orders; a short last batch is left out.
        steps: At most so many.
        batch_size: Examples a step, at most as many as there are.
        training: The planned settings.
        seed: Of the orders and the augmentation.
        lr_factor: The planned peak rate is multiplied with it.
        weight_decay: Whether weights decay as planned.
        stop_below: End once a batch's loss is below.
        after_backward: Called with the step before gradients are clipped and applied.
        after_step: Called with the step once weights have changed.
    """
    rate = training.optimiser.lr * lr_factor
    decay = 0.0 if weight_decay == "none" else training.optimiser.weight_decay
    settings = training.optimiser.model_copy(update={"lr": rate, "weight_decay": decay})
    optimisers = build_optimisers(model, settings)
    augment = augmentation_of(task, seed=seed)
    model.train()
    curve: Curve = []
    permutation = order(seed=seed, epoch=0, count=len(examples))
    position = epoch = 0
    for step in range(steps):
        if position + batch_size > len(examples):
            position, epoch = 0, epoch + 1
            permutation = order(seed=seed, epoch=epoch, count=len(examples))
        batch = augment(
            examples.take(permutation[position : position + batch_size]), sample=step, part=0
        )
        position += batch_size
        loss = mean_loss(task, model(**batch.arrays), batch)
        value = float(loss.detach())
        curve.append((step, value))
        if value < stop_below or not math.isfinite(value) or not loss.requires_grad:
            break
        model.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        after_backward(step, model)
        if settings.clip_norm:
            nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
        for optimiser in optimisers:
            optimiser.step()
        after_step(step, model)
    return ShortTraining(model, curve)


def mean_loss(task: Task, outputs: Tensor, examples: Examples) -> Tensor:
    """Return the mean loss a unit, as the trainer takes it: scalar with a gradient."""
    units = len(examples) if examples.units is None else examples.units.sum()
    return task.loss(outputs.float(), examples.target).sum() / units


def input_independent(
    task: Task, model: nn.Module, train: Examples, *, steps: int, training: TrainingSettings
) -> nn.Module:
    """Train a copy of the network on inputs without information; the baseline of baselines.

    Every input is replaced by zeros, so all the network can learn is the label's
    rate. Returns the trained copy; call it on `without_information` inputs.
    """
    torch.manual_seed(training.seed)
    return train_briefly(
        task,
        copy.deepcopy(model),
        without_information(train),
        steps=steps,
        batch_size=min(training.batch_size, len(train)),
        training=training,
    ).model


def without_information(examples: Examples) -> Examples:
    """Replace every input by zeros (categories: the index of what was never seen)."""
    arrays = {name: torch.zeros_like(array) for name, array in examples.arrays.items()}
    return Examples(arrays, examples.target, examples.units)
