"""Another feed, asked anew for each epoch."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing

from training_core.feeds.batches import Feed, Sharing, StepBatch


class EpochByEpoch:
    """For an order that is known when the epoch before has ended, and no sooner.

    A feed that goes ahead would have begun the next epoch by then; what it has of that is dropped.

    Attributes:
        inner: The other feed.
    """

    def __init__(self, inner: Feed) -> None:
        self.inner = inner

    def __len__(self) -> int:
        return len(self.inner)

    def steps(self, sharing: Sharing, *, samples: int) -> Generator[StepBatch, None, None]:
        """Yield this rank's part of every step (see `batches.Feed`)."""
        while True:
            end = (samples // len(self) + 1) * len(self)
            with closing(self.inner.steps(sharing, samples=samples)) as steps:
                while samples < end:
                    batch = next(steps)
                    samples = batch.samples_after
                    yield batch
