"""The contract of feeds, kept by every feed."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from feed_contract import Case, Foreign, Pairs, numbered, write_arrow
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from training_core.feeds import blocks, chunks
from training_core.feeds.arrow import open_arrow
from training_core.feeds.batches import Feed
from training_core.feeds.blocks import BlockFeed
from training_core.feeds.dataset import DatasetFeed
from training_core.feeds.hosts import HostFeed
from training_core.feeds.memory import MemoryFeed
from training_core.feeds.npy import open_blocks, write_blocks
from training_core.feeds.prefetch import Prefetched


@pytest.fixture(autouse=True, scope="module")
def _small_chunks_and_blocks() -> Iterator[None]:
    """Few rows fill several chunks, several blocks and several windows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "_STEPS", 3)
        patch.setattr(blocks, "BLOCK_BYTES", 64)
        yield


@cache  # each write waits for the disk
def npy_feed(count: int, *, units: bool) -> Feed:
    with tempfile.TemporaryDirectory() as folder:  # mapped files outlive their names
        parts = [
            numbered(min(9, count - first), first=first, units=units)
            for first in range(0, count, 9)
        ]
        assert write_blocks(Path(folder), parts) == count
        return BlockFeed([open_blocks(Path(folder))], window_blocks=3)


@cache
def arrow_feed(count: int) -> Feed:
    """Two files of record batches of 7 rows."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{part}.arrow" for part in range(2)]
        half = count // 2
        write_arrow(files[0], numbered(half, units=True))
        write_arrow(files[1], numbered(count - half, first=half, units=True))
        segments = [segment for file in files for segment in open_arrow(file, units="units")]
        return BlockFeed(segments, window_blocks=2)


@cache
def shards(count: int) -> list[BlockFeed | None]:
    """Shards of uneven lengths, one of them empty."""
    lengths = [count // 2, 1, 0, count - count // 2 - 1]
    feeds: list[BlockFeed | None] = []
    for shard, length in enumerate(lengths):
        with tempfile.TemporaryDirectory() as folder:
            write_blocks(Path(folder), [numbered(length, first=sum(lengths[:shard]))])
            segment = open_blocks(Path(folder))
            feeds.append(BlockFeed([segment], window_blocks=2) if length else None)
    return feeds


def host_feed(count: int, rank: int, world_size: int) -> Feed:
    """On one host or two."""
    hosts = 1 if world_size == 1 else 2
    feeds = shards(count)

    def opened(shard: int) -> BlockFeed:
        assert shard % hosts == rank * hosts // world_size
        feed = feeds[shard]
        assert feed is not None
        return feed

    lengths = [len(feed) if feed is not None else 0 for feed in feeds]
    return HostFeed(opened, lengths=lengths, host=rank * hosts // world_size, hosts=hosts)


CASES = [
    Case("memory", lambda count, *_: MemoryFeed(numbered(count))),
    Case("memory, units", lambda n, *_: MemoryFeed(numbered(n, units=True)), units=True),
    Case("npy", lambda count, *_: npy_feed(count, units=False)),
    Case("npy, units", lambda count, *_: npy_feed(count, units=True), units=True),
    Case("arrow", lambda count, *_: arrow_feed(count), units=True),
    Case(
        "dataset",
        lambda n, *_: DatasetFeed(Pairs(n), units=numbered(n, units=True).units),
        units=True,
    ),
    Case("hosts", host_feed, strided=False),
    Case("prefetched memory", lambda count, *_: Prefetched(MemoryFeed(numbered(count)))),
    Case("prefetched npy", lambda count, *_: Prefetched(npy_feed(count, units=True)), units=True),
    Case("prefetched foreign", lambda count, *_: Prefetched(Foreign(count), depth=1)),
]
EVERY_FEED = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@EVERY_FEED
@limits(max_examples=25, deadline=None)
@given(
    count=st.integers(4, 60),
    batch_size=st.integers(1, 25),
    world_size=st.sampled_from([1, 2, 4]),
    microbatches=st.sampled_from([1, 3]),
)
def test_each_sample_is_seen_once_an_epoch_whatever_the_ranks(
    case: Case, count: int, batch_size: int, world_size: int, microbatches: int
) -> None:
    per_epoch = -(-count // batch_size)
    (alone,) = case.ranks(count, 2 * per_epoch, batch_size=batch_size)
    ranks = case.ranks(
        count,
        2 * per_epoch,
        batch_size=batch_size,
        microbatches=microbatches,
        world_size=world_size,
    )
    for epoch in (alone[:per_epoch], alone[per_epoch:]):
        assert sorted(row for step in epoch for row in step.rows) == list(range(count))
    for step, parts in zip(alone, zip(*ranks, strict=True), strict=True):
        assert sorted(row for part in parts for row in part.rows) == sorted(step.rows)
        assert {len(part.parts) for part in parts} == {microbatches}
        assert {part.samples for part in parts} == {len(step.rows)}
        assert {part.samples_after for part in parts} == {step.samples_after}
        expected = sum(row % 5 + 1 if case.units else 1 for row in step.rows)
        assert {part.units for part in parts} == {float(expected)}
        if case.strided:
            together = [part for rank in parts for part in rank.parts]
            assert together == [step.rows[p :: len(together)] for p in range(len(together))]


@EVERY_FEED
@limits(max_examples=25, deadline=None)
@given(
    count=st.integers(4, 40),
    batch_size=st.integers(1, 15),
    done=st.integers(0, 12),
    world_size=st.sampled_from([1, 2, 4]),
    microbatches=st.sampled_from([1, 3]),
)
def test_starting_at_any_position_goes_on_as_if_never_stopped(
    case: Case, count: int, batch_size: int, done: int, world_size: int, microbatches: int
) -> None:
    sharing = {"batch_size": batch_size, "world_size": world_size, "microbatches": microbatches}
    whole = case.ranks(count, done + 4, **sharing)
    position = whole[0][done - 1].samples_after if done else 0
    resumed = case.ranks(count, 4, samples=position, **sharing)
    assert resumed == [steps[done:] for steps in whole]


@EVERY_FEED
def test_a_run_goes_on_with_other_ranks_without_losing_or_repeating_a_sample(case: Case) -> None:
    seen, samples = [], 0
    for world_size, steps in ((4, 2), (1, 1), (2, 4)):
        ranks = case.ranks(41, steps, batch_size=6, world_size=world_size, samples=samples)
        seen += [row for rank in ranks for step in rank for row in step.rows]
        samples = ranks[0][-1].samples_after
    assert samples == 41
    assert sorted(seen) == list(range(41))


@EVERY_FEED
def test_a_run_goes_on_with_another_batch_size_without_losing_a_sample(case: Case) -> None:
    (first,) = case.ranks(23, 2, batch_size=5)
    (rest,) = case.ranks(23, 2, batch_size=7, samples=10)
    assert sorted(row for step in first + rest for row in step.rows) == list(range(23))


@EVERY_FEED
def test_the_last_step_of_an_epoch_is_short(case: Case) -> None:
    (steps,) = case.ranks(10, 6, batch_size=4)
    assert [step.samples for step in steps] == [4, 4, 2, 4, 4, 2]
    assert [step.samples_after for step in steps] == [4, 8, 10, 14, 18, 20]


@EVERY_FEED
def test_a_rank_without_a_sample_takes_part_and_counts_for_nothing(case: Case) -> None:
    ranks = case.ranks(9, 2, batch_size=8, world_size=4, microbatches=3)
    assert [sum(len(steps[1].rows) for steps in ranks)] == [1]  # the others: weights of 0
    assert all(len(steps[1].parts) == 3 for steps in ranks)


@EVERY_FEED
def test_epochs_and_seeds_have_orders_of_their_own(case: Case) -> None:
    orders = set()
    for seed in (0, 1):
        (steps,) = case.ranks(30, 2, batch_size=30, seed=seed)
        orders |= {tuple(step.rows) for step in steps}
    assert len(orders) == 4
    assert tuple(range(30)) not in orders


@EVERY_FEED
def test_it_leaves_the_random_numbers_of_training_alone(case: Case) -> None:
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    case.ranks(10, 4, batch_size=3)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    assert np.random.get_state()[1].tolist() == before[2]
