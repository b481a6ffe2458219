"""Which batch sizes this machine can train with, and which of them it trains fast with.

Sizes are doubled from a small one on, and steps of each are timed. On a GPU they are doubled until
memory runs out, and the largest that fits is searched between the last two. On a CPU, where
running out would end more than this process, the growth of the peak is held against what is free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from training_core.errors import TrainingFailed
from training_core.examples import Examples
from training_core.profiling.memory import Kept, free_bytes
from training_core.profiling.planned import Planned, take_steps
from training_core.profiling.throughput import Speed, knee, speed_of

_SECONDS = 0.4  # of each size
_SLOWEST = 4.0  # seconds of a step from which on larger batches are not timed
_SHARE = 0.8  # of the free memory that a training may take: other things grow as well
_SEARCHED = 3  # halvings between the last size that fitted and the first that did not


@dataclass(frozen=True)
class BatchSizes:
    """What was found.

    Attributes:
        speeds: Of each size that was timed, ascending.
        largest: That fits, as far as is known.
        limit: What ends it there: memory, or the rows of the train split.
        bytes_an_example: That the peak grows by; 0: by nothing that shows.
        free: Bytes that were free before.
    """

    speeds: list[Speed]
    largest: int
    limit: str
    bytes_an_example: float
    free: int

    @property
    def knee(self) -> Speed:
        """The smallest size with nine tenths of the best throughput."""
        return knee(self.speeds)

    @property
    def best(self) -> float:
        """Examples a second of the fastest size."""
        return max(speed.examples_per_second for speed in self.speeds)


def find_batch_sizes(
    planned: Planned,
    *,
    seconds: float = _SECONDS,
    on_speed: Callable[[Speed], None] = lambda speed: None,
) -> BatchSizes:
    """Time doubled batch sizes and find the largest that fits.

    Raises:
        TrainingFailed: None fits.
    """
    device, free = planned.device, free_bytes(planned.device)
    most = planned.train_rows
    kept = kept_bytes(planned)
    speeds: list[Speed] = []
    failed = 0
    for size in sizes_to_time(planned.settings.batch_size, most):
        grows = growth(speeds, kept)
        if device.type != "cuda" and free and size * grows > _SHARE * free:
            break
        speed = _speed(planned, size, seconds)
        if speed is None:
            failed = size
            break
        speeds.append(speed)
        on_speed(speed)
        if speed.seconds > _SLOWEST:
            break
    if not speeds:
        raise TrainingFailed(
            f"not even a batch of {failed or 2} fits into the {free / 2**30:.1f} GiB that are free",
            hint="make the network smaller, or set training.activation_checkpointing",
        )
    grows = growth(speeds, kept)
    if device.type == "cuda":
        largest, limit = _by_trying(planned, speeds[-1].batch_size, failed, most)
    else:
        by_memory = int(_SHARE * free / grows) if grows and free else most
        largest, limit = (by_memory, "memory") if by_memory < most else (most, "rows")
    return BatchSizes(speeds, largest, limit, grows, free)


def sizes_to_time(planned: int, most: int) -> list[int]:
    """The planned size, an eighth to 32 times of it by doubling, no more than there are rows."""
    around = (max(2, planned >> 3) << power for power in range(9))
    return sorted({size for size in around if size <= most} | {min(planned, most)})


def growth(speeds: Sequence[Speed], kept: float) -> float:
    """Bytes that the peak grows by with each example: what was seen, or forward keeps, if more."""
    seen = [
        larger.bytes_more / (larger.batch_size - smaller.batch_size)
        for smaller, larger in pairwise(speeds)
    ]
    return max([kept, *seen[-2:]])  # the first ones also load what every size needs


def kept_bytes(planned: Planned) -> float:
    """Bytes that forward keeps for backward, of one example."""
    trainer = planned.trainer(steps=1)
    kept = Kept(trainer)
    with kept.watching():
        take_steps(trainer, 1, after=lambda step: True)
    return kept.bytes / max(1, min(planned.settings.batch_size, len(planned.feed)))


def _speed(planned: Planned, size: int, seconds: float) -> Speed | None:
    """Time one size; None: there is not memory enough."""
    try:
        return speed_of(
            size,
            task=planned.task,
            model=planned.model(),
            examples=_enough(planned.examples, size),
            training=planned.settings,
            device=planned.device,
            seconds=seconds,
        )
    except torch.OutOfMemoryError:
        return None
    finally:
        if planned.device.type == "cuda":
            torch.cuda.empty_cache()


def _enough(examples: Examples, size: int) -> Examples:
    """At least `size` examples: a sample is repeated."""
    if len(examples) >= size:
        return examples
    return examples.take(torch.arange(size) % len(examples))


def _by_trying(planned: Planned, fits: int, failed: int, most: int) -> tuple[int, str]:
    if not failed:
        failed = fits
        while failed < most:
            failed = min(2 * failed, most)
            if _speed(planned, failed, 0.0) is None:
                break
            fits = failed
        else:
            return most, "rows"
    for _ in range(_SEARCHED):
        middle = (fits + failed) // 2
        if _speed(planned, middle, 0.0) is None:
            failed = middle
        else:
            fits = middle
    return fits, "memory"
