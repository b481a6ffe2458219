"""Learning rates (and one_cycle's momentum) by step.

Steps are counted from 0; the last one is `steps - 1`. In the steps of the warm-up the rate rises
evenly from 0, and the step after them is at the peak. Where the shape itself rises:

- one_cycle: its rise (`rising`) is its warm-up; `warmup` is not used.
- triangular, triangular2: the warm-up takes the place of the first rise; without one the first
  cycle starts at the lowest rate, as in torch's CyclicLR.

`docs/schedules.md` shows all of them. All but plateau are pure functions of the step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from training_core.optim.settings import OptimiserSettings, ScheduleSettings
from training_core.optim.shapes import SHAPES, Rate, Run


class Schedule:
    """A learning rate that depends on the step alone; `at` takes about 1 µs.

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
        self._warmup = 0 if settings.shape == "one_cycle" else round(settings.warmup * steps)
        run = Run(settings, peak, steps, self._warmup, momentum)
        self._after = SHAPES[settings.shape](run)

    def at(self, step: int) -> Rate:
        """Return the rate of a step."""
        if step < self._warmup:
            return Rate(self._peak * (step + 1) / (self._warmup + 1))
        return self._after(step)

    def observe(self, loss: float) -> None:
        """Take note of an evaluation's loss: only a plateau does."""

    def state_dict(self) -> dict[str, Any]:
        """Return what has to be kept: nothing."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what was kept."""


class Plateau(Schedule):
    """Warm-up, then the peak times a factor that shrinks after evaluations without a lower loss.

    The one schedule with a memory. A loss that is not a number is not lower. Torch's
    ReduceLROnPlateau is the same with `threshold=0` and a `patience` that is one less.

    Args:
        settings: Warm-up, patience, factor and the lowest rate (`final`).
        peak: The highest rate.
        steps: Of the whole run.
    """

    def __init__(self, settings: ScheduleSettings, *, peak: float, steps: int) -> None:
        super().__init__(settings.model_copy(update={"shape": "constant"}), peak=peak, steps=steps)
        self._settings, self._floor = settings, peak * settings.final
        self._best: float | None = None
        self._waited, self._factor = 0, 1.0

    def at(self, step: int) -> Rate:
        """Return the rate of a step, after what was observed so far."""
        lr = super().at(step).lr
        return Rate(max(min(lr, self._floor), lr * self._factor))

    def observe(self, loss: float) -> None:
        """Take note of an evaluation's loss."""
        if loss < (float("inf") if self._best is None else self._best):
            self._best, self._waited = loss, 0
            return
        self._waited += 1
        if self._waited >= self._settings.plateau_patience:
            self._factor, self._waited = self._factor * self._settings.plateau_factor, 0

    def state_dict(self) -> dict[str, Any]:
        """Return plain data: the lowest loss, evaluations since then, and the factor so far."""
        return {"best": self._best, "waited": self._waited, "factor": self._factor}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what was kept."""
        self._best, self._waited = state["best"], state["waited"]
        self._factor = state["factor"]


def make_schedule(
    settings: ScheduleSettings, optimiser: OptimiserSettings, *, steps: int
) -> Schedule:
    """Return the schedule of a run that has so many steps in all."""
    if settings.shape == "plateau":
        return Plateau(settings, peak=optimiser.lr, steps=steps)
    return Schedule(settings, peak=optimiser.lr, steps=steps, momentum=momentum_of(optimiser))


def momentum_of(optimiser: OptimiserSettings) -> float:
    """Return what one_cycle moves: momentum, or Adam's first beta; 0 where there is neither."""
    if optimiser.name == "adafactor":
        return 0.0
    return optimiser.momentum if optimiser.name in ("sgd", "muon") else optimiser.betas[0]
