"""The gradient noise scale: from which batch size on more examples a step are wasted.

McCandlish, Kaplan, Amodei et al. 2018, arXiv:1812.06162. With G the true gradient and S the trace
of the covariance of one example's, the squared norm of a gradient of B examples is |G|² + S/B in
expectation. Two batch sizes give two equations, and so unbiased estimates of both (their appendix
A.1):

    |G|² ≈ (B |G_B|² - b |G_b|²) / (B - b)        S ≈ (|G_b|² - |G_B|²) / (1/b - 1/B)

Each alone is noisy, and the quotient of two noisy numbers is biased: both are averaged over many
draws before dividing (their B_simple = S / |G|²). Its spread is a jackknife's over the draws.

What it means: with B_simple examples a step one makes half of the progress of a step with the true
gradient. Training with B examples takes 1 + B_simple/B times as many steps as the fewest possible,
and 1 + B/B_simple times as many examples (their equations 2.7 and 5.1). It is a rule for plain SGD
that leaves curvature out: Adam's noise differs, and the true critical size was up to some three
times as large or as small in their measurements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from training_core.examples import Examples
from training_core.feeds.order import order
from training_core.loop import Trainer
from training_core.precision import Precision
from training_core.profiling.planned import Planned, take_steps

_DRAWS = 16  # at each instant
_PARTS = 4  # small batches of a large one
_INSTANTS = 6
_STEPS = 200
_SURE = 2.0  # standard errors from 0 from which on the gradient is told from noise


@dataclass(frozen=True)
class Pair:
    """Squared norms of one draw: of the large batch's gradient, and the small ones' mean."""

    large: float
    small: float


@dataclass(frozen=True)
class NoiseScale:
    """At one instant of a training.

    Attributes:
        step: Steps taken before.
        scale: Examples: S / |G|²; infinite where the gradient cannot be told from noise.
        error: Its standard error; infinite there as well.
        gradient, noise: |G|² and S.
    """

    step: int
    scale: float
    error: float
    gradient: float
    noise: float

    @property
    def known(self) -> bool:
        return math.isfinite(self.scale)


def noise_along(
    planned: Planned, *, steps: int = 0, instants: int = _INSTANTS, draws: int = _DRAWS
) -> list[NoiseScale]:
    """Train a little as planned, and measure at some instants on the way.

    Args:
        planned: The training.
        steps: Of the short training; 0: 200, or as many as are planned.
        instants: At which it is measured, the first behind the first step.
        draws: Large batches at each, of the planned size as far as there are so many examples.
    """
    steps = steps or min(_STEPS, planned.steps)
    trainer = planned.trainer(steps=steps)
    due = {max(1, round(steps * i / max(1, instants - 1))) for i in range(instants)}
    found: list[NoiseScale] = []

    def after(step: int) -> None:
        if step in due:
            pairs = draw_pairs(trainer, planned.examples, draws=draws, seed=step)
            small = small_size(planned, len(planned.examples))
            found.append(scale_of(pairs, step=step, large=small * _PARTS, small=small))

    take_steps(trainer, steps, after=after)
    return found


def small_size(planned: Planned, rows: int) -> int:
    """Return the size of a small batch: a fourth of the planned one, or of what there is."""
    return max(1, min(planned.settings.batch_size, rows) // _PARTS)


def scale_of(pairs: Sequence[Pair], *, step: int, large: int, small: int) -> NoiseScale:
    """Estimate the noise scale from draws, with a jackknife's standard error."""
    gradients = [(large * p.large - small * p.small) / (large - small) for p in pairs]
    noises = [(p.small - p.large) / (1 / small - 1 / large) for p in pairs]
    gradient, noise = _mean(gradients), _mean(noises)
    spread = _deviation(gradients) / math.sqrt(len(pairs))
    if gradient <= _SURE * spread or noise <= 0:
        return NoiseScale(step, math.inf, math.inf, gradient, max(0.0, noise))
    count = len(pairs)
    left_out = [
        ((count * noise - s) / (count * gradient - g))
        for g, s in zip(gradients, noises, strict=True)
    ]
    error = math.sqrt((count - 1) * _deviation(left_out) ** 2 * (count - 1) / count)
    return NoiseScale(step, noise / gradient, error, gradient, noise)


def draw_pairs(trainer: Trainer, examples: Examples, *, draws: int, seed: int) -> list[Pair]:
    """Take gradients of large batches and of their parts; nothing of the training changes.

    Examples are drawn without replacement, for as long as there are some, and then in a new order.
    """
    module, planned = trainer.module, trainer.settings.batch_size
    small = max(1, min(planned, len(examples)) // _PARTS)
    buffers = [buffer.clone() for buffer in module.buffers()]
    pairs, position, epoch = [], 0, 0
    permutation = order(seed=seed, epoch=0, count=len(examples))
    with torch.random.fork_rng(devices=_devices(trainer)):
        torch.manual_seed(seed)
        for _ in range(draws):
            if position + small * _PARTS > len(examples):
                position, epoch = 0, epoch + 1
                permutation = order(seed=seed, epoch=epoch, count=len(examples))
            total: list[Tensor] = []
            norms = []
            for part in range(_PARTS):
                first = position + part * small
                batch = examples.take(permutation[first : first + small])
                gradient = gradient_of(trainer, module, trainer.precision, batch)
                norms.append(_squared(gradient))
                total = [t + g for t, g in zip(total, gradient, strict=True)] if total else gradient
            position += small * _PARTS
            pairs.append(Pair(_squared(total) / _PARTS**2, _mean(norms)))
    for buffer, before in zip(module.buffers(), buffers, strict=True):
        buffer.copy_(before)
    return pairs


def gradient_of(
    trainer: Trainer, module: nn.Module, precision: Precision, examples: Examples
) -> list[Tensor]:
    """Return the gradient of the mean loss a unit, by parameter."""
    examples = examples.to(trainer.strategy.device)
    with precision.autocast():
        outputs = module(**examples.arrays)
    losses = trainer.task.loss(outputs.float(), examples.target)
    units = len(examples) if examples.units is None else float(examples.units.sum())
    trained = [p for p in module.parameters() if p.requires_grad]
    found = torch.autograd.grad(losses.sum() / units, trained, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for p, g in zip(trained, found, strict=True)]


def _squared(gradient: Sequence[Tensor]) -> float:
    return float(sum(float(g.double().square().sum()) for g in gradient))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _deviation(values: Sequence[float]) -> float:
    mean = _mean(values)
    return math.sqrt(sum((v - mean) ** 2 for v in values) / max(1, len(values) - 1))


def _devices(trainer: Trainer) -> list[torch.device]:
    device = trainer.strategy.device
    return [device] if device.type == "cuda" else []
