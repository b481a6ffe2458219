"""The way of the learning rate after its warm-up, one function a shape.

Each takes a `Run`, computes ahead what it can, and returns a pure function of the step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from training_core.optim.settings import ScheduleSettings

# Smith & Topin 2018, "Super-Convergence"; torch's OneCycleLR has the same (div_factor).
ONE_CYCLE_START = 1 / 25


class Rate(NamedTuple):
    """What a step is taken with.

    Attributes:
        lr: Learning rate.
        momentum: Of SGD and Muon, or Adam's first beta; None: as the optimiser was built.
    """

    lr: float
    momentum: float | None = None

    def scaled(self, factor: float) -> Rate:
        """Return it with another learning rate."""
        return Rate(self.lr * factor, self.momentum)


class Run(NamedTuple):
    """What a shape is fitted into: the peak is at step `warmup`, the end at `steps - 1`."""

    settings: ScheduleSettings
    peak: float
    steps: int
    warmup: int
    momentum: float

    @property
    def floor(self) -> float:
        """The last, or lowest, rate."""
        return self.peak * self.settings.final

    @property
    def falling(self) -> int:
        """Steps from the peak to the last one."""
        return max(1, self.steps - 1 - self.warmup)


Shape = Callable[[int], Rate]


def _constant(run: Run) -> Shape:
    rate = Rate(run.peak)
    return lambda step: rate


def _linear(run: Run) -> Shape:
    peak, floor, warmup, falling = run.peak, run.floor, run.warmup, run.falling
    return lambda step: Rate(peak + (floor - peak) * min(1.0, (step - warmup) / falling))


def _cosine(run: Run) -> Shape:
    """Loshchilov & Hutter 2017, "SGDR", without restarts."""
    floor, warmup, falling = run.floor, run.warmup, run.falling
    half, pi, cos = (run.peak - run.floor) / 2, math.pi, math.cos
    return lambda step: Rate(floor + half * (1 + cos(pi * min(1.0, (step - warmup) / falling))))


def _step(run: Run) -> Shape:
    """He et al. 2016: a tenth at one half and three quarters of the run."""
    settings, starts = run.settings, [round(share * run.steps) for share in run.settings.milestones]
    rates = [
        Rate(max(run.floor, run.peak * settings.milestone_factor**fallen))
        for fallen in range(len(starts) + 1)
    ]
    return lambda step: rates[sum(step >= start for start in starts)]


def _inverse_sqrt(run: Run) -> Shape:
    """Vaswani et al. 2017."""
    floor, scale, sqrt = run.floor, run.peak * math.sqrt(run.warmup + 1), math.sqrt
    return lambda step: Rate(max(floor, scale / sqrt(step + 1)))


def _one_cycle(run: Run) -> Shape:
    """Smith & Topin 2018, with cosines: momentum is lowest where the rate is highest."""
    top = max(0.0, run.settings.rising * run.steps - 1)  # the peak's step, as torch has it
    falling = max(1.0, run.steps - 1 - top)
    start, peak, floor = run.peak * ONE_CYCLE_START, run.peak, run.floor
    high, low = run.momentum, min(run.momentum, run.settings.lowest_momentum)
    pi, cos, moves = math.pi, math.cos, run.momentum > 0

    def at(step: int) -> Rate:
        if step < top:
            share, begin = (1 - cos(pi * step / top)) / 2, start
        else:
            share, begin = (1 + cos(pi * min(1.0, (step - top) / falling))) / 2, floor
        lr = begin + (peak - begin) * share
        return Rate(lr, high + (low - high) * share if moves else None)

    return at


def _triangular(run: Run) -> Shape:
    return _cyclic(run, shrink=1.0)


def _triangular2(run: Run) -> Shape:
    return _cyclic(run, shrink=0.5)


def _cyclic(run: Run, *, shrink: float) -> Shape:
    """Smith 2017, "Cyclical Learning Rates"; each cycle is `shrink` times as high."""
    floor, height, warmup = run.floor, run.peak - run.floor, run.warmup
    halves = 2 * run.settings.cycles
    # the warm-up is the first half; nor has a run with fewer steps than halves time to rise from 0
    missing = 1 if warmup or run.steps < halves else 0
    half = max(1.0, (run.steps - warmup) / (halves - missing))

    def at(step: int) -> Rate:
        cycle, place = divmod((step - warmup) / half + missing, 2)  # place: 0 low, 1 high, 2 low
        return Rate(floor + height * (1 - abs(place - 1)) * shrink**cycle)

    return at


SHAPES: dict[str, Callable[[Run], Shape]] = {
    "constant": _constant,
    "linear": _linear,
    "cosine": _cosine,
    "step": _step,
    "one_cycle": _one_cycle,
    "triangular": _triangular,
    "triangular2": _triangular2,
    "inverse_sqrt": _inverse_sqrt,
}
