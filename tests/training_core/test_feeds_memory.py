"""Examples in memory: gathered many steps at once, whatever their types."""

from __future__ import annotations

from itertools import islice

import pytest
import torch
from feed_contract import numbered

from training_core.errors import ConfigurationError
from training_core.examples import Examples
from training_core.feeds.batches import Sharing
from training_core.feeds.memory import MemoryFeed

ALONE = Sharing.of(batch_size=4, microbatches=1, rank=0, world_size=1, seed=0)


def test_batches_are_views_of_memory_that_is_used_again() -> None:
    places = set()
    for step in islice(MemoryFeed(numbered(10_000)).steps(ALONE, samples=0), 1_000):
        pair = step.microbatches[0].examples.arrays["pair"]
        places.add(pair.untyped_storage().data_ptr())
    assert len(places) == 1


def test_a_chunk_stays_valid_until_as_many_more_as_there_are_buffers_were_asked_for() -> None:
    chunks = MemoryFeed(numbered(10_000)).chunks(ALONE, samples=0, buffers=3)
    kept = [next(chunks) for _ in range(3)]
    seen = [
        row for chunk in kept for step in chunk
        for row in step.microbatches[0].examples.arrays["row"].tolist()
    ]  # fmt: skip
    assert len(set(seen)) == len(seen) == sum(len(chunk) for chunk in kept) * 4


def test_types_that_numpy_lacks_and_rows_that_are_not_contiguous_are_fed_as_they_are() -> None:
    row = torch.arange(12)
    half = torch.arange(24, dtype=torch.bfloat16).reshape(2, 12).T
    examples = Examples({"row": row, "half": half, "odd": row % 2 == 1}, torch.zeros(12))
    for step in islice(MemoryFeed(examples).steps(ALONE, samples=0), 3):
        (microbatch,) = step.microbatches
        rows = microbatch.examples.arrays["row"]
        assert torch.equal(microbatch.examples.arrays["half"], half[rows])
        assert torch.equal(microbatch.examples.arrays["odd"], rows % 2 == 1)


def test_a_feed_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no examples to feed"):
        MemoryFeed(numbered(0))
