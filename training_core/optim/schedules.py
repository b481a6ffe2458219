"""Learning rates (and one_cycle's momentum) as pure functions of the step.

Steps are counted from 0; the last one is `steps - 1`. Every shape is at its peak right after its
warm-up, in whose steps the rate rises evenly from 0. What that means where the shape itself rises:

- one_cycle: the rise (`rising`) is the warm-up; `warmup` is not used.
- triangular, triangular2: the warm-up takes the place of the first rise; without one the first
  cycle starts at the lowest rate, as in torch's CyclicLR.

`docs/schedules.md` shows all of them.
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


class Schedule:
    """A shape of which everything but `plateau` is made; `at` is pure and takes about 1 µs.

    Args:
        settings: Shape, warm-up, end.
        peak: The highest rate.
        steps: Of the whole run.
        momentum: Of the optimiser; one_cycle moves it between `lowest_momentum` and this. 0: none.
    """

    def __init__(
        self, settings: ScheduleSettings, *, peak: float, steps: int, momentum: float = 0.0
    ) -> None:
        self._peak = peak
        self._warmup = 0 if settings.shape == "one_cycle" else warmup_steps(settings, steps)
        self._after = _SHAPES[settings.shape](_Run(settings, peak, steps, self._warmup, momentum))

    def at(self, step: int) -> Rate:
        """Return the rate of a step."""
        if step < self._warmup:
            return Rate(self._peak * (step + 1) / (self._warmup + 1))
        return self._after(step)


def warmup_steps(settings: ScheduleSettings, steps: int) -> int:
    """Return how many steps are spent rising; the next one is at the peak."""
    return round(settings.warmup * steps)


class _Run(NamedTuple):
    settings: ScheduleSettings
    peak: float
    steps: int
    warmup: int
    momentum: float

    @property
    def floor(self) -> float:
        return self.peak * self.settings.final

    @property
    def falling(self) -> int:
        """Steps from the peak, at step `warmup`, to the last one."""
        return max(1, self.steps - 1 - self.warmup)


def _constant(run: _Run) -> Callable[[int], Rate]:
    rate = Rate(run.peak)
    return lambda step: rate


def _linear(run: _Run) -> Callable[[int], Rate]:
    peak, floor, warmup, falling = run.peak, run.floor, run.warmup, run.falling
    return lambda step: Rate(peak + (floor - peak) * min(1.0, (step - warmup) / falling))


def _cosine(run: _Run) -> Callable[[int], Rate]:
    """Loshchilov & Hutter 2017, "SGDR", without restarts."""
    floor, warmup, falling = run.floor, run.warmup, run.falling
    half, pi, cos = (run.peak - run.floor) / 2, math.pi, math.cos
    return lambda step: Rate(floor + half * (1 + cos(pi * min(1.0, (step - warmup) / falling))))


def _step(run: _Run) -> Callable[[int], Rate]:
    """He et al. 2016: a tenth at one half and three quarters of the run."""
    settings, starts = run.settings, [round(share * run.steps) for share in run.settings.milestones]
    rates = [
        Rate(max(run.floor, run.peak * settings.milestone_factor**fallen))
        for fallen in range(len(starts) + 1)
    ]
    return lambda step: rates[sum(step >= start for start in starts)]


def _inverse_sqrt(run: _Run) -> Callable[[int], Rate]:
    """Vaswani et al. 2017."""
    floor, scale, sqrt = run.floor, run.peak * math.sqrt(run.warmup + 1), math.sqrt
    return lambda step: Rate(max(floor, scale / sqrt(step + 1)))


def _one_cycle(run: _Run) -> Callable[[int], Rate]:
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


def _triangular(run: _Run) -> Callable[[int], Rate]:
    return _cyclic(run, shrink=1.0)


def _triangular2(run: _Run) -> Callable[[int], Rate]:
    return _cyclic(run, shrink=0.5)


def _cyclic(run: _Run, *, shrink: float) -> Callable[[int], Rate]:
    """Smith 2017, "Cyclical Learning Rates"; each cycle is `shrink` times as high."""
    floor, height, warmup = run.floor, run.peak - run.floor, run.warmup
    missing = 1 if warmup else 0  # the warm-up is the first half of the first cycle
    half = max(1.0, (run.steps - warmup) / (2 * run.settings.cycles - missing))

    def at(step: int) -> Rate:
        cycle, place = divmod((step - warmup) / half + missing, 2)  # place: 0 low, 1 high, 2 low
        return Rate(floor + height * (1 - abs(place - 1)) * shrink**cycle)

    return at


_SHAPES: dict[str, Callable[[_Run], Callable[[int], Rate]]] = {
    "constant": _constant,
    "linear": _linear,
    "cosine": _cosine,
    "step": _step,
    "one_cycle": _one_cycle,
    "triangular": _triangular,
    "triangular2": _triangular2,
    "inverse_sqrt": _inverse_sqrt,
    "plateau": _constant,  # `plateau.py` multiplies it
}
