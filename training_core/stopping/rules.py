"""When a training ends before its epochs are done.

    rules = StoppingRules(settings.stopping, processes=4)
    while not rules.reason:
        ...
        rules.at_interval(point, wall_seconds=...)     # at each log interval
        rules.at_evaluation(step, metrics["loss"])     # at each evaluation

Every decision is a function of what the caller passes and of the saved state, so ranks that pass
the same numbers decide alike, and a resumed run stops where the undisturbed one would have. Wall
time and cost are the exception by nature: they count what was spent up to the checkpoint that a
run went on from, not what was lost between it and the end of the killed process.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from training_core.outcome import Point
from training_core.stopping.settings import StoppingSettings


class StoppingRules:
    """The rules of one training and what they have seen of it.

    Args:
        settings: Which rules, and their limits.
        processes: Of the training, for its cost.

    Attributes:
        reason: Why training must end, in words with the numbers; empty while it may go on. It is
            part of the state: a run that was killed after its last checkpoint, before it could
            end, ends at once when it is resumed. With other rules than it ended by, it goes on.
        seconds: Wall time so far, over all restarts.
        cost: What it cost so far, in the currency of the settings' price.
    """

    def __init__(self, settings: StoppingSettings, *, processes: int) -> None:
        self.settings = settings
        self.processes = processes
        self.reason = ""
        self.seconds = 0.0
        self.cost = 0.0
        self._wall_seconds = 0.0  # of this process, when it was last told
        self._train = _Best()
        self._validation = _Best()

    def at_interval(self, point: Point, *, wall_seconds: float) -> str:
        """Judge a log interval; return the reason to stop, or nothing.

        Args:
            point: Its step, loss and gradient norm are looked at.
            wall_seconds: Since this process began to train; the same number on every rank.
        """
        limits, spent = self.settings, max(0.0, wall_seconds - self._wall_seconds)
        self._wall_seconds = wall_seconds
        self.seconds += spent
        self.cost += spent / 3600 * self.processes * limits.price_per_hour
        self._train.see(point.step, point.loss, min_delta=limits.min_delta)
        known = math.isfinite(point.loss)  # a norm of skipped steps says nothing
        if 0 < limits.max_steps <= point.step:
            return self._stop(f"max steps: {point.step} of the {limits.max_steps} allowed are done")
        if 0 < limits.plateau <= self._train.worse:
            return self._stop(
                f"plateau: {limits.plateau} log intervals without a "
                f"{self._train.better('training loss', limits.min_delta)}"
            )
        if known and point.gradient_norm < limits.gradient_norm:
            return self._stop(
                f"gradient norm: {point.gradient_norm:.3g} at step {point.step}, below "
                f"{limits.gradient_norm:g}"
            )
        if 0 < limits.seconds <= self.seconds:
            return self._stop(
                f"wall time: {self.seconds:.0f} s over all restarts, of {limits.seconds:g} s "
                "allowed"
            )
        if 0 < limits.budget <= self.cost:
            return self._stop(
                f"budget: {self.cost:.2f} of {limits.budget:g} spent in "
                f"{self.seconds / 3600:.2f} h (at {limits.price_per_hour:g} an hour for each of "
                f"{self.processes} processes)"
            )
        return self.reason

    def at_evaluation(self, step: int, loss: float) -> str:
        """Judge an evaluation's validation loss; return the reason to stop, or nothing."""
        limits = self.settings
        self._validation.see(step, loss, min_delta=limits.min_delta)
        if 0 < limits.patience <= self._validation.worse:
            return self._stop(
                f"patience: {limits.patience} evaluations without a "
                f"{self._validation.better('loss', limits.min_delta)}"
            )
        return self.reason

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {
            "reason": self.reason,
            "limits": self.settings.model_dump(),
            "seconds": self.seconds,
            "cost": self.cost,
            "train": self._train.state_dict(),
            "validation": self._validation.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state, in a new process."""
        self.rewind(state)
        self.seconds, self.cost = state["seconds"], state["cost"]
        if state["limits"] == self.settings.model_dump():
            self.reason = state["reason"]
        self._wall_seconds = 0.0

    def rewind(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state in the same process: time and money stay spent."""
        self._train.load_state_dict(state["train"])
        self._validation.load_state_dict(state["validation"])
        self.reason = ""

    def _stop(self, reason: str) -> str:
        self.reason = self.reason or reason
        return self.reason


class _Best:
    """The best loss so far, and how often in a row it was not beaten."""

    def __init__(self) -> None:
        self.loss: float | None = None
        self.step = 0
        self.worse = 0

    def see(self, step: int, loss: float, *, min_delta: float) -> None:
        if math.isfinite(loss) and (self.loss is None or loss < self.loss - min_delta):
            self.loss, self.step, self.worse = loss, step, 0
        else:
            self.worse += 1

    def better(self, noun: str, min_delta: float) -> str:
        """Say what was waited for."""
        if self.loss is None:
            return f"finite {noun}"
        by = f" by {min_delta:g}" if min_delta else ""
        return f"{noun} better than {self.loss:.4g}{by} (step {self.step})"

    def state_dict(self) -> dict[str, Any]:
        return {"loss": self.loss, "step": self.step, "worse": self.worse}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.loss, self.step, self.worse = state["loss"], state["step"], state["worse"]
