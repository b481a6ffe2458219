"""The order of samples: each once an epoch, the same on any number of ranks, from any position."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from training_samples import Sales, rows

from training_core.examples import Examples, StepBatch, order, step_batches, steps_in


def _numbered(count: int) -> Examples:
    return Examples({"row": torch.arange(count)}, torch.zeros(count))


def _steps(
    count: int,
    steps: int,
    *,
    batch_size: int,
    accumulation: int = 1,
    samples: int = 0,
    rank: int = 0,
    world_size: int = 1,
    seed: int = 3,
) -> list[StepBatch]:
    batches = step_batches(
        _numbered(count),
        batch_size=batch_size,
        accumulation=accumulation,
        seed=seed,
        samples=samples,
        rank=rank,
        world_size=world_size,
    )
    return list(islice(batches, steps))


def _counted(step: StepBatch) -> list[int]:
    """Rows that count, in order."""
    return [
        int(row)
        for microbatch in step.microbatches
        for row, weight in zip(microbatch.examples.arrays["row"], microbatch.weight, strict=True)
        if weight > 0
    ]


@limits(max_examples=60, deadline=None)
@given(
    count=st.integers(1, 60),
    batch_size=st.integers(1, 25),
    world_size=st.sampled_from([1, 2, 3, 4]),
    accumulation=st.sampled_from([1, 3]),
)
def test_each_sample_is_seen_once_an_epoch_whatever_the_ranks(
    count: int, batch_size: int, world_size: int, accumulation: int
) -> None:
    per_epoch = -(-count // batch_size)
    alone = _steps(count, 2 * per_epoch, batch_size=batch_size)
    ranks = [
        _steps(
            count,
            2 * per_epoch,
            batch_size=batch_size,
            accumulation=accumulation,
            rank=rank,
            world_size=world_size,
        )
        for rank in range(world_size)
    ]
    for epoch in range(2):
        seen = [
            row
            for steps in ranks
            for step in steps[epoch * per_epoch : (epoch + 1) * per_epoch]
            for row in _counted(step)
        ]
        assert sorted(seen) == list(range(count))
    for step, parts in zip(alone, zip(*ranks, strict=True), strict=True):
        together = [row for part in parts for row in _counted(part)]
        assert sorted(together) == sorted(_counted(step))  # the same step on any number of ranks
        assert {part.count for part in parts} == {len(together)}
        assert {part.samples_after for part in parts} == {step.samples_after}
        assert {len(part.microbatches) for part in parts} == {accumulation}
        assert all(len(m.examples) >= 1 for part in parts for m in part.microbatches)


@limits(max_examples=60, deadline=None)
@given(
    count=st.integers(1, 40),
    batch_size=st.integers(1, 15),
    done=st.integers(0, 12),
    world_size=st.sampled_from([1, 2, 3, 4]),
)
def test_starting_at_any_position_goes_on_as_if_never_stopped(
    count: int, batch_size: int, done: int, world_size: int
) -> None:
    for rank in range(world_size):
        whole = _steps(count, done + 4, batch_size=batch_size, rank=rank, world_size=world_size)
        position = whole[done - 1].samples_after if done else 0
        resumed = _steps(
            count, 4, batch_size=batch_size, samples=position, rank=rank, world_size=world_size
        )
        assert [_counted(step) for step in resumed] == [_counted(step) for step in whole[done:]]
        assert [s.samples_after for s in resumed] == [s.samples_after for s in whole[done:]]


def test_a_run_can_go_on_with_another_number_of_ranks_without_losing_a_sample() -> None:
    first = [_steps(23, 2, batch_size=6, rank=rank, world_size=3) for rank in range(3)]
    position = first[0][-1].samples_after
    rest = [
        _steps(23, 2, batch_size=6, rank=rank, world_size=2, samples=position) for rank in range(2)
    ]
    seen = [row for part in (*first, *rest) for step in part for row in _counted(step)]
    assert sorted(seen) == list(range(23))


def test_with_fewer_samples_than_ranks_the_spare_ranks_take_part_with_weight_0() -> None:
    for rank in range(4):
        (step,) = _steps(2, 1, batch_size=8, rank=rank, world_size=4)
        (microbatch,) = step.microbatches
        assert microbatch.weight.tolist() == [float(rank < 2)]
        assert step.count == 2


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    orders = {
        tuple(order(seed=seed, epoch=epoch, count=30).tolist())
        for seed in (0, 1)
        for epoch in (0, 1)
    }
    assert len(orders) == 4
    assert all(sorted(each) == list(range(30)) for each in orders)


def test_the_order_leaves_torchs_own_random_numbers_alone() -> None:
    before = torch.get_rng_state()
    order(seed=1, epoch=1, count=10)
    assert torch.equal(torch.get_rng_state(), before)


@limits(max_examples=60, deadline=None)
@given(count=st.integers(1, 40), batch_size=st.integers(1, 50), samples=st.integers(1, 150))
def test_the_number_of_steps_is_the_one_that_the_batches_need(
    count: int, batch_size: int, samples: int
) -> None:
    steps = steps_in(samples=samples, count=count, batch_size=batch_size)
    taken = _steps(count, steps, batch_size=batch_size)
    assert taken[-1].samples_after >= samples
    assert len(taken) == 1 or taken[-2].samples_after < samples


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_labels_of_any_dtype_become_a_float32_target(dtype: str) -> None:
    frame = rows(10)
    expected = frame["bought"].tolist()
    frame["bought"] = frame["bought"].astype(dtype)
    task = Sales()
    examples = Examples.from_frame(task, task.preprocessor().fit(frame), frame)
    assert examples.target.dtype == torch.float32
    assert examples.target.tolist() == expected


def test_rows_without_a_label_are_refused_and_counted() -> None:
    frame = pd.concat([rows(10), rows(2).assign(bought=np.nan)])
    task = Sales()
    with pytest.raises(ValueError, match="2 rows have no label"):
        Examples.from_frame(task, task.preprocessor().fit(frame), frame)
