"""What a training did, as data: `asdict` gives plain data, `Point(**…)` takes it back."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Point:
    """One log interval. What is None was not measured, or is not known.

    Attributes:
        step: The interval's last one, counted from 1.
        loss: Mean over the interval's steps that were not skipped; NaN where there are none.
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
        evaluations: (step, validation metrics).
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
