"""Turns what a log interval collected into its `Point`."""

from __future__ import annotations

import time

from torch import nn

from training_core.evaluation import Objective
from training_core.examples import Examples
from training_core.interval import Interval
from training_core.optim.update import Update
from training_core.outcome import Outcome, Point
from training_core.parallel.strategy import Strategy
from training_core.telemetry.flops import flops_per_example, peak_flops, utilisation
from training_core.telemetry.memory import peak_bytes
from training_core.telemetry.meter import Meter

_COUNTED_AFTER = 20.0  # seconds of training; counting FLOPs takes about one, mostly imports


class Recorder:
    """The telemetry of one training.

    Args:
        task: For its loss.
        model: The user's module.
        sample: A few examples to count FLOPs with.
        flops: Of one example, where it was counted before the model was changed.
        strategy: The processes.
        precision: Its name.

    Attributes:
        meter: Measures the last step of each interval.
    """

    def __init__(
        self,
        *,
        task: Objective,
        model: nn.Module,
        sample: Examples,
        strategy: Strategy,
        precision: str,
        flops: float | None = None,
    ) -> None:
        overlaps = strategy.world_size > 1 and strategy.parts is None
        self.meter = Meter(strategy.device, model.parameters() if overlaps else ())
        self._task, self._model, self._sample = task, model, sample
        self._strategy, self._precision = strategy, precision
        self._began = self._lap = time.monotonic()
        self._flops = flops
        self._peak: float | None = None
        self._counted, self._before = False, 0

    def restart(self, *, samples: int) -> None:
        """Start the clock: training begins, or goes on with so many samples in its interval."""
        self._lap, self._before = time.monotonic(), samples

    def point(
        self, *, outcome: Outcome, loss: float, lr: float, interval: Interval, update: Update
    ) -> Point:
        """Return the figures of the interval, and begin the next one; waits for the device."""
        skipped = int(update.skipped.item())
        taken = len(interval) - (skipped - outcome.skipped_steps)
        norm = float(update.norm_sum.item())
        update.norm_sum.zero_()
        now = time.monotonic()
        rate = (interval.samples - self._before) / max(now - self._lap, 1e-9)
        self._lap, self._before = now, 0
        measured = self.meter.read()
        return Point(
            step=outcome.steps,
            samples=outcome.samples,
            loss=loss,
            lr=lr,
            gradient_norm=norm / taken if taken else float("nan"),
            update_norm=float(update.update_norm.item()),
            skipped_steps=skipped,
            samples_per_second=rate,
            peak_memory_bytes=peak_bytes(self._strategy.device),
            mfu=self._utilisation(rate),
            **measured,  # type: ignore[arg-type]
        )

    def _utilisation(self, rate: float) -> float | None:
        if self._strategy.rank != 0:
            return None
        if not self._counted and time.monotonic() - self._began > _COUNTED_AFTER:
            self._counted = True
            if self._flops is None:
                self._flops = flops_per_example(self._model, self._task, self._sample)
            self._peak = peak_flops(self._strategy.device, self._precision)
        return utilisation(
            flops=self._flops,
            samples_per_second=rate,
            peak=self._peak,
            world_size=self._strategy.world_size,
        )
