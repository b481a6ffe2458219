"""What a profile says, as data."""

from __future__ import annotations

from dataclasses import dataclass, field

from training_core.profiling.calibration import Machine
from training_core.profiling.memory import Memory
from training_core.profiling.operations import Work
from training_core.profiling.phases import Phase
from training_core.profiling.places import Place
from training_core.profiling.trace import Traced


@dataclass(frozen=True)
class Sync:
    """Something that makes the host wait, or writes, at a line of the user's.

    Attributes:
        kind: What it is, in words.
        place: Where.
        times: A step.
    """

    kind: str
    place: Place
    times: float


@dataclass(frozen=True)
class HotLine:
    """A line of the user's that time is spent in, with all that it calls.

    Attributes:
        share: Of the step.
    """

    place: Place
    phase: Phase
    share: float


@dataclass(frozen=True)
class Profile:
    """What some steps were spent on.

    Attributes:
        steps: That were timed.
        seconds: Of one, median; `spread` has the quartiles.
        phases: Mean seconds of a step by phase, as the host saw them.
        batch_size, parameters: As planned.
        units: Of an example: tokens of a text; 1.
        flops: Of one example, forward and backward; None: they could not be counted.
        mfu: Share of the machine's peak that the step reaches.
        machine: What it could do.
        work: By operation.
        traced: Under torch's profiler.
        bars: Seconds of a step by what they are spent on; they add up to `seconds`.
        limits: Shares of a step by what limits it; with "input" they add up to 1.
        syncs: Waits and prints found, most frequent first.
        hot: Lines of the user's that take most.
        memory: Of this process.
        evaluation_seconds: Of evaluating the whole validation split once.
        compiled: Whether torch.compile has fused operations, so that they are not told apart.
    """

    steps: int
    seconds: float
    spread: tuple[float, float]
    phases: dict[Phase, float]
    batch_size: int
    parameters: int
    units: float
    flops: float | None
    mfu: float | None
    machine: Machine
    work: dict[str, Work]
    traced: Traced
    bars: dict[str, float]
    limits: dict[str, float]
    memory: Memory
    evaluation_seconds: float
    compiled: bool = False
    syncs: list[Sync] = field(default_factory=list)
    hot: list[HotLine] = field(default_factory=list)

    @property
    def bound(self) -> str:
        """What limits a step most: input, compute, memory or overhead."""
        return max(self.limits, key=lambda name: self.limits[name])

    @property
    def intensity(self) -> float:
        """FLOPs a byte of the step."""
        moved = sum(work.bytes for work in self.work.values())
        return sum(work.flops for work in self.work.values()) / moved if moved else 0.0

    @property
    def input_share(self) -> float:
        """Share of a step that the network waits for its data."""
        return self.limits["input"]

    @property
    def examples_per_second(self) -> float:
        return self.batch_size / self.seconds
