"""The one schedule with a memory: the rate falls when the validation loss no longer does."""

from __future__ import annotations

from typing import TypedDict

from training_core.optim.schedules import Rate, Schedule
from training_core.optim.settings import OptimiserSettings, ScheduleSettings


class PlateauState(TypedDict):
    """Plain data: lowest loss so far, evaluations since then, and what the peak is multiplied by."""

    best: float | None
    waited: int
    factor: float


class Plateau:
    """Warm-up, then the peak times a factor that shrinks after evaluations without a lower loss.

    A loss that is not a number is not lower. Torch's ReduceLROnPlateau is the same with
    `threshold=0` and a `patience` that is one less.

    Args:
        settings: Warm-up, patience, factor and the lowest rate (`final`).
        peak: The highest rate.
        steps: Of the whole run.
    """

    def __init__(self, settings: ScheduleSettings, *, peak: float, steps: int) -> None:
        self._schedule = Schedule(settings, peak=peak, steps=steps)
        self._settings, self._floor = settings, peak * settings.final
        self._best: float | None = None
        self._waited = 0
        self._factor = 1.0

    def at(self, step: int) -> Rate:
        """Return the rate of a step, after what was observed so far."""
        return Rate(max(self._floor, self._schedule.at(step).lr * self._factor))

    def observe(self, loss: float) -> None:
        """Take note of an evaluation."""
        if loss < (float("inf") if self._best is None else self._best):
            self._best, self._waited = loss, 0
            return
        self._waited += 1
        if self._waited >= self._settings.plateau_patience:
            self._factor *= self._settings.plateau_factor
            self._waited = 0

    def state_dict(self) -> PlateauState:
        return {"best": self._best, "waited": self._waited, "factor": self._factor}

    def load_state_dict(self, state: PlateauState) -> None:
        self._best, self._waited = state["best"], state["waited"]
        self._factor = state["factor"]


def make_schedule(
    settings: ScheduleSettings, *, optimiser: OptimiserSettings, steps: int
) -> Schedule | Plateau:
    """Return the schedule of a run that has so many steps in all."""
    if settings.shape == "plateau":
        return Plateau(settings, peak=optimiser.lr, steps=steps)
    return Schedule(settings, peak=optimiser.lr, steps=steps, momentum=momentum_of(optimiser))


def momentum_of(optimiser: OptimiserSettings) -> float:
    """Return what one_cycle moves: momentum, or Adam's first beta; 0 where there is neither."""
    if optimiser.name == "adafactor":
        return 0.0
    return optimiser.momentum if optimiser.name in ("sgd", "muon") else optimiser.betas[0]
