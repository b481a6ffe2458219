"""One batch learned by heart: what can be reached at all, and a training that tries to."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from training_core.checks.chance import without_dropout
from training_core.checks.contract import Curve
from training_core.checks.free_outputs import best_constant, best_shared, squashed
from training_core.checks.short_training import mean_loss
from training_core.examples import Examples
from training_core.optim.optimisers import build_optimisers
from training_core.settings import TrainingSettings
from training_core.task import PADDING, Task

_MEAN_OF = 10  # last losses, where the network draws at random whatever is done


@dataclass(frozen=True)
class Bounds:
    """Losses a unit between which a network learns a batch.

    Attributes:
        constant: Of the best output that is the same for all.
        floor: Of the best outputs where rows with equal inputs share one.
        base: Of the best outputs at all: above 0 with label smoothing, say.
    """

    constant: float
    floor: float
    base: float

    @classmethod
    def of(cls, task: Task, outputs: Tensor, batch: Examples) -> Bounds:
        """Find them by descents of outputs without a network."""
        constant = float(mean_loss(task, best_constant(task, outputs, batch), batch))
        groups = equal_inputs(task, batch)
        shape = groups.shape
        apart = torch.arange(math.prod(shape)).view(shape)
        floors = [_floor(task, outputs, batch, g) for g in (groups, apart)]
        if constant <= floors[1] + 1e-9 * abs(floors[1]):  # all labels are alike
            constant = max(constant, float(mean_loss(task, torch.zeros_like(outputs), batch)))
        return cls(constant, *floors)

    def gained(self, loss: float) -> float:
        """Return how far a loss is from the constant's to the floor: 0 to 1."""
        return (self.constant - loss) / max(1e-12, self.constant - self.floor)


def _floor(task: Task, outputs: Tensor, batch: Examples, groups: Tensor) -> float:
    """Return the lowest loss; where it squashes twice, or draws at random, what it should be: 0.

    What a broken loss says must not raise the limit that it is held against.
    """
    if not _same_again(task, outputs, batch.target):
        return 0.0
    best = best_shared(task, outputs, batch, groups)
    with torch.no_grad():
        losses = task.loss(best, batch.target).double()
    lonely = torch.bincount(groups.flatten())[groups].reshape(len(batch), -1).amax(1) == 1
    losses = torch.where(lonely & squashed(task, best, batch.target), 0.0, losses)
    units = len(batch) if batch.units is None else float(batch.units.sum())
    return float(losses.sum()) / units


def equal_inputs(task: Task, batch: Examples) -> Tensor:
    """Number what a network cannot tell apart: int64 [N] of rows, [N, T] of positions.

    A position is told from another by all that is not after it, for what generates text sees no
    more.
    """
    flat = [a.reshape(len(batch), -1).double().numpy() for a in batch.arrays.values()]
    if task.kind != "sequence":
        return _numbered(np.concatenate(flat, 1))
    length = batch.target.shape[1]
    running = [
        array.reshape(len(batch), length, -1).double().numpy()
        for array in batch.arrays.values()
        if array.ndim > 1 and array.shape[1] == length
    ]
    whole = [a for a in flat if a.shape[1] % length] or [np.zeros((len(batch), 1))]
    group, numbers, used = _numbered(np.concatenate(whole, 1)), [], 0
    for t in range(length):
        seen = [group.numpy()[:, None], *(array[:, t] for array in running)]
        group = _numbered(np.concatenate(seen, 1))
        numbers.append(group + used)
        used += int(group.max()) + 1
    padding = batch.target == PADDING
    numbered = torch.stack(numbers, 1)
    numbered[padding] = numbered[padding] * 0  # they count for nothing, in whichever group
    return numbered


def _numbered(rows: npt.NDArray[np.float64]) -> Tensor:
    _, groups = np.unique(rows, axis=0, return_inverse=True)
    return torch.from_numpy(groups.reshape(-1).astype(np.int64))


@dataclass(frozen=True)
class Attempt:
    """A training on one batch.

    Attributes:
        best: The lowest loss; of a network that draws at random, of ten steps' means.
        curve: Loss by step.
        outputs: The last ones; None if there was no gradient.
    """

    best: float
    curve: Curve
    outputs: Tensor | None

    @property
    def diverged(self) -> bool:
        """Did it end higher than it began, or with no number?"""
        first, last = self.curve[0][1], self.curve[-1][1]
        return not math.isfinite(last) or last > 2 * abs(first)


def learn_by_heart(
    task: Task,
    model: nn.Module,
    batch: Examples,
    *,
    training: TrainingSettings,
    lr_factor: float,
    steps: int,
    stop_below: float,
) -> Attempt:
    """Train on one batch again and again, without augmentation, weight decay and dropout."""
    steady = take_chance_out(model, batch)
    with torch.no_grad():
        steady = steady and _same_again(task, model(**batch.arrays).float(), batch.target)
    changes = {"lr": training.optimiser.lr * lr_factor, "weight_decay": 0.0}
    settings = training.optimiser.model_copy(update=changes)
    optimisers = build_optimisers(model, settings)
    curve: Curve = []
    best, outputs = math.inf, None
    for step in range(steps):
        said = model(**batch.arrays)
        loss = mean_loss(task, said, batch)
        curve.append((step, float(loss.detach())))
        recent = [value for _, value in curve[-(1 if steady else _MEAN_OF) :]]
        if steady or len(recent) == _MEAN_OF:
            best = min(best, sum(recent) / len(recent))
        if not loss.requires_grad:
            return Attempt(curve[-1][1], curve, None)
        outputs = said.detach()
        if best < stop_below or not math.isfinite(curve[-1][1]):
            break
        model.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        if settings.clip_norm:
            nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
        for optimiser in optimisers:
            optimiser.step()
    return Attempt(best, curve, outputs)


def take_chance_out(model: nn.Module, examples: Examples) -> bool:
    """Put a model into train mode without dropout; return whether it then repeats itself.

    If it does not, it is put into eval mode, but for layers that normalise by the batch.
    """
    without_dropout(model).train()
    if _repeats(model, examples):
        return True
    model.eval()
    for module in model.modules():
        if isinstance(module, _NormBase) and module.track_running_stats:
            module.train()
    return _repeats(model, examples)


def _same_again(task: Task, outputs: Tensor, target: Tensor) -> bool:
    """Is the loss of the same outputs the same again?"""
    with torch.no_grad():
        first, second = (task.loss(outputs, target) for _ in range(2))
    return torch.allclose(first, second, equal_nan=True)


def _repeats(model: nn.Module, examples: Examples) -> bool:
    with torch.no_grad():
        first, second = (model(**examples.arrays) for _ in range(2))
    return torch.allclose(first, second, rtol=1e-4, atol=1e-5, equal_nan=True)
