"""Any PyTorch Dataset, in our order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
import torch
from feed_contract import Pairs, noted, numbered
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, WeightedRandomSampler

from training_core.errors import ConfigurationError
from training_core.feeds.batches import Sharing
from training_core.feeds.dataset import DatasetFeed

ALONE = Sharing.of(batch_size=4, microbatches=1, rank=0, world_size=1, seed=0)


class Fetching(Pairs):
    """A Dataset that fetches many items at once."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.fetched: list[list[int]] = []

    def __getitems__(self, rows: list[int]) -> list[tuple[dict[str, Tensor], float]]:
        self.fetched.append(rows)
        return [self[row] for row in rows]


class Tensors(Dataset[tuple[Tensor, int]]):
    """Items are (tensor, target), the target an int."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        return torch.full((2,), float(row)), row % 7


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(10))


def test_worker_processes_give_the_same_batches() -> None:
    alone = DatasetFeed(Pairs(30)).steps(ALONE, samples=8)
    helped = DatasetFeed(Pairs(30), workers=2).steps(ALONE, samples=8)
    assert [noted(s) for s in islice(helped, 9)] == [noted(s) for s in islice(alone, 9)]


def test_a_step_is_one_call_of_getitems_where_the_dataset_has_it() -> None:
    dataset = Fetching(30)
    steps = [noted(step) for step in islice(DatasetFeed(dataset).steps(ALONE, samples=0), 3)]
    assert dataset.fetched == [step.rows for step in steps]


def test_starting_far_into_an_epoch_reads_none_of_the_items_before() -> None:
    dataset = Pairs(1_000)
    (step,) = islice(DatasetFeed(dataset).steps(ALONE, samples=2_900), 1)
    assert dataset.asked == noted(step).rows


def test_a_rank_reads_its_own_items_alone() -> None:
    dataset = Pairs(30)
    second = Sharing.of(batch_size=8, microbatches=2, rank=1, world_size=2, seed=0)
    (step,) = islice(DatasetFeed(dataset).steps(second, samples=0), 1)
    assert len(dataset.asked) == 4
    assert dataset.asked == noted(step).rows


def test_a_tensor_is_given_the_name_that_the_model_takes() -> None:
    (step,) = islice(DatasetFeed(Tensors(), name="image").steps(ALONE, samples=0), 1)
    examples = step.microbatches[0].examples
    assert examples.arrays["image"].shape == (4, 2)
    assert examples.target.dtype == torch.float32
    assert torch.equal(examples.arrays["image"][:, 0] % 7, examples.target)


def test_dataset_collate_function_and_workers_are_taken_from_a_dataloader() -> None:
    def collate(items: list[Any]) -> tuple[dict[str, Tensor], Tensor]:
        arrays = {name: torch.stack([a[name] for a, _ in items]) for name in items[0][0]}
        return {**arrays, "extra": arrays["row"] + 1}, torch.tensor([t for _, t in items])

    loader = DataLoader(Pairs(10), batch_size=3, shuffle=True, collate_fn=collate, num_workers=1)
    (step,) = islice(DatasetFeed.of_loader(loader).steps(ALONE, samples=0), 1)
    arrays = step.microbatches[0].examples.arrays
    assert torch.equal(arrays["extra"], arrays["row"] + 1)
    assert step.samples == 4


def test_a_dataset_that_has_no_positions_is_refused() -> None:
    for make in (
        lambda: DatasetFeed(Stream()),
        lambda: DatasetFeed.of_loader(DataLoader(Stream())),
    ):
        with pytest.raises(ConfigurationError, match=r"Stream can only be read.*\n\nhint: give a"):
            make()


def test_a_sampler_whose_place_is_not_known_is_refused() -> None:
    sampler = WeightedRandomSampler([1.0] * 10, 10)
    for loader in (
        DataLoader(Pairs(10), sampler=sampler),
        DataLoader(Pairs(10), batch_sampler=[[0, 1], [2]]),
        DataLoader(Pairs(10), batch_size=None),
    ):
        with pytest.raises(ConfigurationError, match="place in an epoch is not known"):
            DatasetFeed.of_loader(loader)


def test_units_that_are_not_one_for_each_example_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="units has 9 values for 10 examples"):
        DatasetFeed(Pairs(10), units=numbered(9, units=True).units)


def test_items_of_another_shape_are_refused_in_words() -> None:
    class Bare(Tensors):
        def __getitem__(self, row: int) -> Any:
            return torch.zeros(3)

    with pytest.raises(ConfigurationError, match=r"Bare gives batches of .*not \(dict of tensors"):
        next(DatasetFeed(Bare()).steps(ALONE, samples=0))
