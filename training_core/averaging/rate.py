"""The learning rate of SWA: constant or cyclic from its start on (arXiv:1803.05407, section 3.1).

Averaging explores around a minimum only while the rate is high enough to move there: a schedule
that has come to its end gives weights that are all alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from training_core.averaging.settings import AveragingSettings
from training_core.optim.schedules import Schedule
from training_core.optim.shapes import Rate


class SwaSchedule(Schedule):
    """Another schedule until SWA begins, then its own.

    Args:
        inner: The other.
        settings: Of averaging.
        peak: The optimiser's rate.
        first: Steps before SWA begins.
        every: Steps of a cycle.
    """

    def __init__(
        self, inner: Schedule, settings: AveragingSettings, *, peak: float, first: int, every: int
    ) -> None:
        self._inner, self._first, self._every = inner, first, every
        self._high, self._low = peak * settings.high, peak * settings.low
        self._cyclic = settings.rate == "cyclic"

    def at(self, step: int) -> Rate:
        """Return the rate of a step; momentum stays as the optimiser was built."""
        if step < self._first:
            return self._inner.at(step)
        if not self._cyclic:
            return Rate(self._high)
        through = ((step - self._first) % self._every + 1) / self._every
        return Rate((1 - through) * self._high + through * self._low)

    def observe(self, loss: float) -> None:
        """Let the other take note of an evaluation's loss."""
        self._inner.observe(loss)

    def state_dict(self) -> dict[str, Any]:
        """Return the other's."""
        return self._inner.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what was kept."""
        self._inner.load_state_dict(state)


def span(settings: AveragingSettings, *, steps: int, epoch: int) -> tuple[int, int]:
    """Return after which step SWA begins, and how many steps lie between two of its weights.

    Args:
        settings: With `start` and `every`.
        steps: Of the whole training.
        epoch: Steps of one.
    """
    first = min(round(settings.start * steps), steps - 1)
    return first, min(settings.every or epoch, steps - first)
