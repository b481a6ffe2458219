"""What a feed gives the loop, and how ranks share a step: the contract of all feeds.

A step's samples are `batch_size` neighbours in a global order that depends on (seed, epoch) alone.
They are cut into `parts` microbatches: part p holds samples p, p + parts, p + 2·parts, …; each rank
works on `mine`, its own consecutive parts. So the number of ranks changes who does the work, never
what the work is, and the only state is how many samples have been consumed.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from training_core.examples import Examples


@dataclass(frozen=True)
class Sharing:
    """How steps are cut into microbatches, and which of them are this rank's.

    Attributes:
        batch_size: Samples a step, over all ranks.
        parts: Microbatches a step, over all ranks.
        mine: This rank's parts, as many on every rank.
        seed: Of the order.
    """

    batch_size: int
    parts: int
    mine: range
    seed: int

    @classmethod
    def of(
        cls, *, batch_size: int, microbatches: int, rank: int, world_size: int, seed: int
    ) -> Sharing:
        """Share equally: `microbatches` for each of `world_size` ranks."""
        mine = range(rank * microbatches, (rank + 1) * microbatches)
        return cls(batch_size, microbatches * world_size, mine, seed)


@dataclass(frozen=True, slots=True)
class Microbatch:
    """What one process works on at once.

    Attributes:
        examples: At least one example.
        weight: None: each example counts. Zeros: the example only keeps the ranks in step.
    """

    examples: Examples
    weight: Tensor | None = None


@dataclass(frozen=True, slots=True)
class StepBatch:
    """One rank's part of one optimiser step.

    Attributes:
        microbatches: As many on every rank, so that collectives match.
        units: What the step's summed loss is divided by: units (examples, or tokens) over all
            ranks and microbatches.
        samples: Samples of the step, over all ranks and microbatches.
        samples_after: Global position once this step is done.
    """

    microbatches: list[Microbatch]
    units: float
    samples: int
    samples_after: int


class Feed(Protocol):
    """Samples in a fixed global order, from any position on."""

    def __len__(self) -> int:
        """Samples of an epoch."""

    def steps(self, sharing: Sharing, *, samples: int) -> Generator[StepBatch, None, None]:
        """Yield this rank's part of every step from a global position on.

        It never ends by itself: epoch follows epoch, and who asks closes it. `close()` ends threads
        and workers that prepare batches.

        An epoch's last step is short rather than padded or dropped, so each sample is seen once an
        epoch. A batch is valid until the next one is asked for: its memory may be used again.

        Args:
            sharing: How ranks share a step.
            samples: Samples already consumed, over all ranks; found in O(1).
        """
