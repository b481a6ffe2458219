"""What a training did, as data: `asdict` gives plain data, `Point(**…)` takes it back."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

MOST_POINTS = 500


@dataclass(frozen=True)
class Point:
    """One log interval. What is None was not measured, or is not known.

    Attributes:
        step: The interval's last one, counted from 1.
        loss: Mean over the interval's steps whose loss is finite; NaN where there are none.
        lr: Of the last step.
        gradient_norm: Mean over the steps that were not skipped, before clipping.
        samples_per_second: Over all ranks and the whole interval, pauses included.
        samples: Consumed so far, over all ranks.
        update_norm: 2-norm of what the measured step changed in the weights.
        skipped_steps: So far, in the whole training.
        seconds_data: The measured step's wait for its batch (one step of each interval, rank 0).
        seconds_forward: Its forward passes and losses.
        seconds_backward: Its backward passes, while gradients were still being computed.
        seconds_optimiser: Its clipping and update.
        seconds_communication: Its exposed communication, when nothing was left to compute.
        checkpoint_stall: Seconds of the interval in which a checkpoint kept training waiting.
        peak_memory_bytes: Most that rank 0 has held so far: of the GPU, else of main memory.
        mfu: Model FLOPs utilisation of all devices, from 0 to 1.
    """

    step: int
    loss: float
    lr: float
    gradient_norm: float
    samples_per_second: float
    samples: int = 0
    update_norm: float | None = None
    skipped_steps: int = 0
    seconds_data: float | None = None
    seconds_forward: float | None = None
    seconds_backward: float | None = None
    seconds_optimiser: float | None = None
    seconds_communication: float | None = None
    checkpoint_stall: float = 0.0
    peak_memory_bytes: int | None = None
    mfu: float | None = None

    @cached_property
    def text(self) -> str:
        """As JSON: encoded once, however many checkpoints hold it."""
        return json.dumps({name: getattr(self, name) for name in self.__dataclass_fields__})


@dataclass(frozen=True)
class Rollback:
    """A return to an earlier checkpoint, because training had diverged.

    Attributes:
        step: Where it was decided.
        to_step: The checkpoint's; 0: training began again.
        reason: What was seen.
        lr_factor: What the schedule's learning rate is multiplied with from then on.
    """

    step: int
    to_step: int
    reason: str
    lr_factor: float


@dataclass
class Outcome:
    """What training did.

    Attributes:
        stop_reason: Why it ended: `epochs`, `asked to stop` (it can be resumed), or the rule that
            ended it, in words with its numbers.
        skipped_steps: Steps whose gradient was not finite.
        curve: Of the log intervals; thinned out, see `note`. MLflow gets all of them.
        evaluations: (step, validation metrics).
        intervals: Logged so far.
        stride: Each how many of them is in the curve.
    """

    steps: int = 0
    samples: int = 0
    resumed_from: int = 0
    skipped_steps: int = 0
    stop_reason: str = ""
    samples_per_second: float = 0.0
    rollbacks: list[Rollback] = field(default_factory=list)
    curve: list[Point] = field(default_factory=list)
    evaluations: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    intervals: int = 0
    stride: int = 1

    def note(self, point: Point) -> None:
        """Count an interval, and add it to the curve if it is one of those that are kept.

        A full curve loses every other point, and from then on takes every other one: it is saved
        with each checkpoint, which must not take longer the longer a training has run.
        """
        self.intervals += 1
        if self.intervals % self.stride == 0:
            self.curve.append(point)
        if len(self.curve) >= MOST_POINTS:
            self.curve, self.stride = self.curve[1::2], 2 * self.stride

    def history(self) -> str:
        """Return what has to be kept to go on, as JSON; no point is encoded twice."""
        rest = {
            "skipped_steps": self.skipped_steps,
            "rollbacks": [asdict(rollback) for rollback in self.rollbacks],
            "evaluations": self.evaluations,
            "intervals": self.intervals,
            "stride": self.stride,
        }
        points = ",".join(point.text for point in self.curve)
        return f'{json.dumps(rest)[:-1]}, "curve": [{points}]}}'

    @classmethod
    def gone_on(cls, text: str, *, steps: int, samples: int) -> Outcome:
        """Return the outcome so far of a training that goes on from such a history."""
        history: dict[str, Any] = json.loads(text)
        return cls(
            **{
                **history,
                "steps": steps,
                "samples": samples,
                "rollbacks": [Rollback(**rollback) for rollback in history["rollbacks"]],
                "curve": [Point(**point) for point in history["curve"]],
                "evaluations": [(step, metrics) for step, metrics in history["evaluations"]],
            }
        )
