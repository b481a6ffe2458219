"""Orders of samples: pure functions of (seed, epoch), found at any position."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from training_core.feeds.order import BlockOrder, Interleaving, order, steps_in
from training_core.feeds.steps import stretches


@pytest.mark.parametrize("count", [1, 30, 100_003])
def test_the_order_is_the_one_that_checkpoints_were_written_with(count: int) -> None:
    generator = torch.Generator().manual_seed(5 * 1_000_003 + 2)
    expected = torch.randperm(count, generator=generator)
    assert torch.equal(order(seed=5, epoch=2, count=count), expected)
    assert order(seed=5, epoch=2, count=count).dtype == torch.int64


@limits(max_examples=60, deadline=None)
@given(count=st.integers(1, 40), batch_size=st.integers(1, 50), samples=st.integers(1, 150))
def test_the_number_of_steps_is_the_one_that_the_batches_need(
    count: int, batch_size: int, samples: int
) -> None:
    steps = steps_in(samples=samples, count=count, batch_size=batch_size)
    ends = [0]
    for stretch in stretches(count=count, batch_size=batch_size, samples=0, most=1):
        ends += stretch.samples_after
        if len(ends) > steps:
            break
    assert ends[steps - 1] < samples <= ends[steps]


@limits(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=20),
    window_blocks=st.integers(1, 7),
    seed=st.integers(0, 5),
)
def test_a_block_order_has_each_row_once_and_mixes_within_windows_only(
    lengths: list[int], window_blocks: int, seed: int
) -> None:
    blocks = BlockOrder(np.array(lengths), window_blocks=window_blocks, seed=seed, epoch=1)
    seen: list[int] = []
    position = 0
    while position < sum(lengths):
        window = blocks.window_at(position)
        assert window.first == position
        assert window.last - window.first == sum(lengths[block] for block in window.blocks)
        assert sorted(blocks.rows(window)) == list(range(window.last - window.first))
        inside = blocks.window_at(window.last - 1)  # found from any of its positions
        assert (inside.number, inside.first, inside.last) == (window.number, position, window.last)
        seen += window.blocks.tolist()
        position = window.last
    assert sorted(seen) == list(range(len(lengths)))


def test_block_orders_differ_between_epochs_seeds_and_windows() -> None:
    found = set()
    for seed, epoch in ((0, 0), (0, 1), (1, 0)):
        blocks = BlockOrder(np.full(40, 20), window_blocks=4, seed=seed, epoch=epoch)
        for position in (0, 80):
            window = blocks.window_at(position)
            found.add((*window.blocks.tolist(), *blocks.rows(window).tolist()))
            found.add(tuple(blocks.rows(window).tolist()))
    assert len(found) == 12


@limits(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=6).filter(sum),
    seed=st.integers(0, 5),
    window=st.integers(1, 40),
    cuts=st.lists(st.integers(0, 180), max_size=4),
)
def test_interleaved_shards_give_each_sample_once_in_an_order_that_no_cut_changes(
    lengths: list[int], seed: int, window: int, cuts: list[int]
) -> None:
    total = sum(lengths)
    shards, places = Interleaving(lengths, seed=seed, epoch=0).span(0, total)
    for shard, length in enumerate(lengths):
        assert places[shards == shard].tolist() == list(range(length))  # each, and in its order
    edges = sorted({0, total, *(cut for cut in cuts if cut < total)})
    for first, last in pairwise(edges):
        # evaluated from there, by an object that has seen nothing else, in other windows
        part = Interleaving(lengths, seed=seed, epoch=0, window=window).span(first, last)
        assert part[0].tolist() == shards[first:last].tolist()
        assert part[1].tolist() == places[first:last].tolist()


def test_interleaved_shards_are_drawn_from_in_proportion_to_their_lengths_all_along() -> None:
    lengths = [1_000, 10, 3_000, 500]
    shards, _ = Interleaving(lengths, seed=0, epoch=3).span(0, sum(lengths))
    for shard, length in enumerate(lengths):
        drawn = np.cumsum(shards == shard)
        expected = np.arange(1, sum(lengths) + 1) * length / sum(lengths)
        assert np.abs(drawn - expected).max() < 1 + len(lengths) * length / sum(lengths)


def test_interleavings_differ_between_epochs_and_seeds() -> None:
    found = {
        tuple(Interleaving([7, 11, 13, 29], seed=seed, epoch=epoch).span(0, 60)[0])
        for seed in range(2)
        for epoch in range(2)
    }
    assert len(found) == 4
