"""What a training did, as data."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Point:
    """One log interval: means over its steps, over all ranks."""

    step: int
    loss: float
    lr: float
    gradient_norm: float
    samples_per_second: float


@dataclass
class Outcome:
    """What training did.

    Attributes:
        stop_reason: Why it ended: `epochs`, or `asked to stop` (it can be resumed).
        evaluations: (step, metrics over the whole validation split).
        skipped_steps: Steps whose gradient was not finite.
    """

    steps: int = 0
    samples: int = 0
    resumed_from: int = 0
    skipped_steps: int = 0
    stop_reason: str = ""
    samples_per_second: float = 0.0
    curve: list[Point] = field(default_factory=list)
    evaluations: list[tuple[int, dict[str, float]]] = field(default_factory=list)
