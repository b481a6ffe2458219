"""The learning-rate range test: the rate rises exponentially while the planned network trains.

Smith 2017, arXiv:1506.01186, section 3.3, with the exponential sweep and the stop at four times the
best loss that became usual with fast.ai. The loss of each step's own batch is taken before its
update, and smoothed by an exponential mean without the bias of its start (Kingma and Ba 2015,
arXiv:1412.6980, section 3). Everything else is the planned training: task, augmentation, clipping,
precision, batch size. The start is the same each time, and nothing of it is kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from training_core.errors import ConfigurationError
from training_core.loop import Trainer
from training_core.optim.shapes import Rate
from training_core.profiling.planned import Planned, take_steps

STEPS = 150
# Wide, whatever is planned: that may be far off. At a tenth of the planned rate at the latest, and
# ten times it at least.
LOWEST, HIGHEST = 1e-6, 10.0
_SMOOTHING = 0.9
_DIVERGED = 4.0  # times the best smoothed loss
_TENTH = 0.1
_WINDOW = 0.25  # decades over which the slope is taken, or as many steps as the mean looks back
_SETTLED = 10  # steps until the mean is one of many
# Deviations of the losses about their mean: that of a difference of two such means is a third.
_BEYOND_NOISE = 1.0


@dataclass(frozen=True)
class Sweep:
    """A range test.

    Attributes:
        planned: The rate of the settings.
        rates: Of each step.
        losses: Mean loss a unit of each step's batch, before its update.
        smoothed: The same, smoothed.
        steepest: Rate at which the smoothed loss falls fastest; None: it falls nowhere.
        diverged: Rate at which the loss became four times its best, or no number; None: none did.
        fell: By which share of the first loss the smoothed one fell.
    """

    planned: float
    rates: list[float]
    losses: list[float]
    smoothed: list[float]
    steepest: float | None
    diverged: float | None
    fell: float

    @property
    def proposed(self) -> float | None:
        """The lower of the steepest point and a tenth of where it diverges; None: cannot say."""
        if self.steepest is None:
            return None
        if self.diverged is None:
            return self.steepest
        return min(self.steepest, _TENTH * self.diverged)


def sweep(planned: Planned, *, steps: int = STEPS, low: float = 0.0, high: float = 0.0) -> Sweep:
    """Make a range test.

    Args:
        planned: The training.
        steps: Of the whole sweep; it ends earlier where the loss diverges.
        low, high: First and last rate; 0: a millionth and 10.

    Raises:
        ConfigurationError: There is nothing between the rates, or too few steps.
    """
    rate = planned.settings.optimiser.lr
    low, high = low or min(LOWEST, rate / 10), high or max(HIGHEST, 10 * rate)
    if not 0 < low < high or steps < 10:
        raise ConfigurationError(
            f"a sweep of {steps} steps from {low:g} to {high:g} shows nothing",
            hint="choose a last rate above the first, and 10 steps at least",
        )
    trainer = planned.trainer(steps=steps, log_every=steps + 2)
    rising = Rising(low, high, steps=steps)
    trainer.schedule = rising  # type: ignore[assignment]
    losses: list[float] = []
    smoothing = Smoothing()
    smoothed: list[float] = []

    def after(step: int) -> bool:
        losses.append(_loss_of_last_step(trainer))
        smoothed.append(smoothing.add(losses[-1]))
        return not math.isfinite(losses[-1]) or smoothed[-1] > _DIVERGED * min(smoothed)

    take_steps(trainer, steps, after=after)
    rates = [rising.at(step).lr for step in range(len(losses))]
    return judge(rate, rates, losses, smoothed)


def judge(planned: float, rates: list[float], losses: list[float], smoothed: list[float]) -> Sweep:
    """Find the steepest point and where it diverged."""
    best = min((s for s in smoothed if math.isfinite(s)), default=math.nan)
    diverged = next(
        (
            rate
            for rate, loss, smooth in zip(rates, losses, smoothed, strict=True)
            if not math.isfinite(loss) or _worse(smooth, best, smoothed[0])
        ),
        None,
    )
    end = rates.index(diverged) if diverged is not None else len(rates)
    fell = (smoothed[0] - best) / abs(smoothed[0]) if smoothed and smoothed[0] else 0.0
    return Sweep(
        planned=planned,
        rates=rates,
        losses=losses,
        smoothed=smoothed,
        steepest=_steepest(rates[:end], losses[:end], smoothed[:end]),
        diverged=diverged,
        fell=fell,
    )


def _worse(smooth: float, best: float, first: float) -> bool:
    """A loss that may be negative has no multiples: it diverged where it left its range by far."""
    if best > 0:
        return smooth > _DIVERGED * best
    return smooth > first + (_DIVERGED - 1) * abs(first - best)


def _steepest(rates: list[float], losses: list[float], smoothed: list[float]) -> float | None:
    """Rate in the middle of the window in which the smoothed loss falls most.

    The way down alone counts: what is behind the lowest loss is noise on the way up. None where
    the loss falls no further than by chance.
    """
    if len(rates) < 4:
        return None
    lowest = min(range(len(smoothed)), key=lambda step: smoothed[step])
    a_decade = (len(rates) - 1) / math.log10(rates[-1] / rates[0])
    width = max(1, min(len(rates) // 4, max(_SETTLED, round(_WINDOW * a_decade))))
    first = min(_SETTLED, len(rates) // 8)
    slopes = [
        (smoothed[i + width] - smoothed[i], math.sqrt(rates[i] * rates[i + width]))
        for i in range(first, max(first, lowest - width + 1))
    ]
    slope, rate = min(slopes, default=(0.0, 0.0))
    noise = _deviation(losses[: lowest + 1])
    return rate if -slope > _BEYOND_NOISE * noise else None


def _deviation(losses: list[float]) -> float:
    """Deviation of neighbours from each other, by their median: a fall has little part in it."""
    steps = [abs(after - before) for before, after in pairwise(losses)]
    return median(steps) / (0.6745 * math.sqrt(2)) if steps else 0.0


class Rising:
    """A schedule that rises exponentially from one rate to another."""

    def __init__(self, low: float, high: float, *, steps: int) -> None:
        self._low, self._ratio, self._last = low, high / low, max(1, steps - 1)

    def at(self, step: int) -> Rate:
        """Return the rate of a step."""
        return Rate(self._low * self._ratio ** (step / self._last))

    def observe(self, loss: float) -> None:
        """It does not listen."""

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """There is nothing to go on from."""


class Smoothing:
    """An exponential mean without the bias of its start."""

    def __init__(self) -> None:
        self._mean, self._count = 0.0, 0

    def add(self, value: float) -> float:
        """Take one more value; return the mean."""
        self._count += 1
        self._mean = _SMOOTHING * self._mean + (1 - _SMOOTHING) * value
        return self._mean / (1 - _SMOOTHING**self._count)


def _loss_of_last_step(trainer: Trainer) -> float:
    interval = trainer.interval
    place, units = interval.places[len(interval) - 1], interval.units[-1]
    return sum(float(part) for part in place) / (units or 1.0)
