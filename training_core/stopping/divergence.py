"""Notice that a training diverges, and decide how it goes on from an earlier checkpoint.

    why = divergence.judge(point)                      # at each log interval, on every rank alike
    if why:                                            # (judge raises when attempts are spent)
        ...restore the newest checkpoint at or before divergence.last_clean
        divergence.rewind(saved["divergence"], step=point.step, to_step=..., reason=why)
        ...go on, with the schedule's learning rate × divergence.lr_scale

**Replays do not depend on kills.** What a training does next is a function of its checkpoint alone.
A checkpoint that a rollback went to knows nothing of that rollback; so if the process is killed
during the replay, before a newer checkpoint, the next process trains on from it at the old rate,
sees the same numbers, decides the same rollback and arrives where the killed one was. That needs
two things of the loop: checkpoints after `last_clean` are deleted before the replay begins (else a
killed replay would go on from the abandoned branch), and a point is judged before the checkpoint
of the same step is saved. Where steps are not reproducible, the rollback is decided anew.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from statistics import median
from typing import Any

from training_core.errors import TrainingFailed
from training_core.outcome import Point, Rollback
from training_core.stopping.settings import RecoverySettings

_REMEMBERED = 10  # intervals: of the median, and of the diagnosis
_AT_LEAST = 3  # clean intervals before a spike can be told
_STILL_CLEAN = 0.01  # share of an interval's steps skipped; fp16's scaler skips 1 in 2,000
_NOISE = 0.1  # share of the first loss: ratios of losses below it are noise of a finished training


class Divergence:
    """What was seen of the losses, and what has been done about it.

    Args:
        settings: How much is a spike, how often to go back, and how far the rate then falls.
        max_skipped: Steps that may be skipped between clean intervals.
        precision: For the diagnosis.

    Attributes:
        last_clean: Last step of the last interval that was clean (no spike, hardly a step
            skipped): later checkpoints are not to be trusted when training diverges; 0: none yet.
        lr_scale: What the schedule's learning rate is multiplied with.
        rollbacks: All so far, as in `Outcome.rollbacks`.
    """

    def __init__(
        self, settings: RecoverySettings, *, max_skipped: int, precision: str = ""
    ) -> None:
        self.settings = settings
        self.max_skipped = max_skipped
        self.precision = precision
        self.lr_scale = 1.0
        self.rollbacks: list[Rollback] = []
        self.last_clean = 0
        self._step = 0  # of the last interval
        self._skipped = self._skipped_when_clean = 0  # totals at that step, and at `last_clean`
        self._first: float | None = None  # loss of the first clean interval
        self._losses: list[float] = []  # of the last clean intervals
        self._seen: list[str] = []  # the last intervals in words

    def judge(self, point: Point) -> str:
        """Judge a log interval; return why training has diverged, or nothing.

        Args:
            point: Its loss, norm, rate and skipped steps are the same on every rank.

        Raises:
            TrainingFailed: It has, and all attempts are spent; the text is a diagnosis.
        """
        steps, skipped = point.step - self._step, point.skipped_steps - self._skipped
        self._step, self._skipped = point.step, point.skipped_steps
        self._seen = [*self._seen, _said(point, skipped)][-_REMEMBERED:]
        reason = self._reason(point, skipped)
        if reason:
            return self._diverged(reason)
        if math.isfinite(point.loss) and skipped <= _STILL_CLEAN * steps:
            self.last_clean, self._skipped_when_clean = point.step, point.skipped_steps
            self._losses = [*self._losses, point.loss][-_REMEMBERED:]
            self._first = point.loss if self._first is None else self._first
        return ""

    def judge_evaluation(self, step: int, loss: float) -> str:
        """Judge a validation loss; return why training has diverged, or nothing.

        Raises:
            TrainingFailed: As `judge`.
        """
        if math.isfinite(loss):
            return ""
        return self._diverged(f"the validation loss at step {step} is {loss}")

    def rewind(
        self, state: Mapping[str, Any] | None, *, step: int, to_step: int, reason: str
    ) -> Rollback:
        """Go back to a checkpoint's state in the same process; return the rollback.

        What was seen goes back; what was done about it stays, and the rate falls.

        Args:
            state: As it was saved with the checkpoint; None: training begins again.
            step: Where it was decided.
            to_step: The checkpoint's.
            reason: As `judge` said.
        """
        if state is None:
            self._forget()
        else:
            self._load_seen(state)
        self.lr_scale *= self.settings.lr_factor
        self.rollbacks.append(Rollback(step, to_step, reason, self.lr_scale))
        return self.rollbacks[-1]

    def failure(self, reason: str) -> TrainingFailed:
        """Return the error of a training that cannot be mended, with what was seen and done."""
        lines = [f"training diverged: {reason}", "", "what was seen:"]
        lines += [f"  {line}" for line in self._seen] or ["  no log interval was complete"]
        lines += ["", "what was done:"]
        lines += [
            f"  step {each.step}: {each.reason}; back to step {each.to_step}, learning rate × "
            f"{each.lr_factor:g} of its schedule"
            for each in self.rollbacks
        ] or [f"  nothing: {self._why_nothing()}"]
        lines += ["", f"precision: {self.precision}"] if self.precision else []
        return TrainingFailed("\n".join(lines), hint=self._hint(reason))

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {
            "step": self._step,
            "skipped": self._skipped,
            "skipped_when_clean": self._skipped_when_clean,
            "last_clean": self.last_clean,
            "first": self._first,
            "losses": list(self._losses),
            "seen": list(self._seen),
            "lr_scale": self.lr_scale,
            "rollbacks": [asdict(rollback) for rollback in self.rollbacks],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state, in a new process."""
        self._load_seen(state)
        self.lr_scale = state["lr_scale"]
        self.rollbacks = [Rollback(**rollback) for rollback in state["rollbacks"]]

    def _reason(self, point: Point, skipped: int) -> str:
        since = point.skipped_steps - self._skipped_when_clean
        if since > self.max_skipped:
            return (
                f"{since} steps up to step {point.step} had gradients that are not finite "
                f"(allowed: {self.max_skipped})"
            )
        if not math.isfinite(point.loss):  # of skipped steps only: those are counted above
            return "" if skipped else f"the loss up to step {point.step} is {point.loss}"
        usual = median(self._losses) if len(self._losses) >= _AT_LEAST else 0.0
        bar = max(self.settings.spike * usual, _NOISE * (self._first or 0.0))
        if self.settings.spike and usual > 0 and point.loss > bar:  # ratios need a loss above 0
            return (
                f"the loss up to step {point.step} is {point.loss:.4g}, {point.loss / usual:.1f} "
                f"times the median of recent intervals ({usual:.4g})"
            )
        return ""

    def _diverged(self, reason: str) -> str:
        if len(self.rollbacks) >= self.settings.attempts:
            raise self.failure(reason)
        return reason

    def _why_nothing(self) -> str:
        if self.settings.attempts == 0:
            return "training.recovery.attempts is 0"
        return "there is no checkpoint to go back to"

    def _hint(self, reason: str) -> str:
        tries = ["lower training.optimiser.lr", "a longer training.schedule.warmup"]
        if self.precision == "fp16":
            tries.append("training.precision: bf16 or fp32")
        if "not finite" in reason or "nan" in reason or "inf" in reason:
            tries.append(
                "look for features or a loss that can become infinite (log of 0, division by 0)"
            )
        else:
            tries.append("a smaller training.optimiser.clip_norm")
            tries.append("training.recovery.spike: 0 if such losses are healthy here")
        return "; ".join(tries)

    def _forget(self) -> None:
        fresh = Divergence(self.settings, max_skipped=self.max_skipped)
        self._load_seen(fresh.state_dict())

    def _load_seen(self, state: Mapping[str, Any]) -> None:
        self.last_clean, self._first = state["last_clean"], state["first"]
        self._step, self._skipped = state["step"], state["skipped"]
        self._skipped_when_clean = state["skipped_when_clean"]
        self._losses, self._seen = list(state["losses"]), list(state["seen"])


def _said(point: Point, skipped: int) -> str:
    words = (
        f"step {point.step}: loss {point.loss:.4g}, gradient norm {point.gradient_norm:.3g}, "
        f"learning rate {point.lr:.3g}"
    )
    return words + (f", {skipped} skipped" if skipped else "")
