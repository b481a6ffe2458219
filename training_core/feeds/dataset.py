"""Any map-style PyTorch Dataset, read by a DataLoader in our order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, Self

import torch
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    default_collate,
)

from training_core.errors import ConfigurationError
from training_core.examples import Examples
from training_core.feeds.batches import Sharing, StepBatch
from training_core.feeds.chunks import ChunkedFeed, batches
from training_core.feeds.order import order
from training_core.feeds.steps import Cut, Stretch, stretches

Collate = Callable[[list[Any]], Any]


class DatasetFeed(ChunkedFeed):
    """Feeds a Dataset whose items are (dict of arrays, target) or (tensor, target).

    For data that cannot be had as arrays: a DataLoader costs ten to a hundred times what
    `MemoryFeed` does. Each step is one call of the dataset's `__getitems__` if it has that, else
    one of `__getitem__` for each sample. Randomness inside the dataset should follow from the index
    alone: a run that goes on draws other numbers than one that was never stopped.

    Args:
        dataset: With `__len__` and `__getitem__`, the same on every rank.
        workers: Processes that read ahead; 0: this one.
        collate: Makes a batch, (dict of arrays or a tensor, target), of a list of items; None:
            torch's `default_collate`.
        name: Of the array where items are (tensor, target): an argument of the model.
        units: float32 [N], how many units each example's summed loss covers; None: one each.
        classes: Targets are classes or tokens, handed on as int64; otherwise as float32.
        options: Other arguments of the DataLoader, for its workers.

    Raises:
        ConfigurationError: The dataset is an IterableDataset, has no length, or is empty.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        *,
        workers: int = 0,
        collate: Collate | None = None,
        name: str = "inputs",
        units: Tensor | None = None,
        classes: bool = False,
        **options: Any,
    ) -> None:
        if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__"):
            raise ConfigurationError(
                f"{type(dataset).__name__} can only be read from its start, in its own order: a "
                "run could not go on where it stopped",
                hint="give a dataset with __len__ and __getitem__, or write the examples once "
                "with training_core.feeds.npy.write_blocks and read them with BlockFeed",
            )
        self._count = len(dataset)
        if not self._count:
            raise ConfigurationError(f"{type(dataset).__name__} holds no examples")
        if units is not None and len(units) != self._count:
            raise ConfigurationError(
                f"units has {len(units)} values for {self._count} examples of the dataset"
            )
        self._dataset, self._name, self._units = dataset, name, units
        self._type = torch.int64 if classes else torch.float32
        self._options = {
            "num_workers": workers,
            "collate_fn": collate or default_collate,
            **options,
        }

    @classmethod
    def of_loader(
        cls,
        loader: DataLoader[Any],
        *,
        name: str = "inputs",
        units: Tensor | None = None,
        classes: bool = False,
    ) -> Self:
        """Take dataset, collate function and workers of a DataLoader.

        Its batch size and its shuffling give way to the trainer's.

        Raises:
            ConfigurationError: It has a sampler of its own, or its dataset cannot be used.
        """
        plain = isinstance(loader.sampler, SequentialSampler) or (
            isinstance(loader.sampler, RandomSampler) and not loader.sampler.replacement
        )
        if not isinstance(loader.dataset, IterableDataset) and (
            not plain or loader.batch_size is None or type(loader.batch_sampler) is not BatchSampler
        ):
            raise ConfigurationError(
                f"the DataLoader draws with {type(loader.batch_sampler or loader.sampler).__name__}"
                f" over {type(loader.sampler).__name__}, whose place in an epoch is not known",
                hint="leave sampler and batch_sampler out; weight examples in the task's loss, or "
                "choose them in the dataset",
            )
        options: dict[str, Any] = {
            "worker_init_fn": loader.worker_init_fn,
            "timeout": loader.timeout,
            "multiprocessing_context": loader.multiprocessing_context,
        }
        if loader.num_workers:
            options["prefetch_factor"] = loader.prefetch_factor
        return cls(
            loader.dataset,
            workers=loader.num_workers,
            collate=loader.collate_fn,
            name=name,
            units=units,
            classes=classes,
            **options,
        )

    def __len__(self) -> int:
        return self._count

    def chunks(
        self, sharing: Sharing, *, samples: int, buffers: int = 1, pin: bool = False
    ) -> Generator[list[StepBatch], None, None]:
        """Yield this rank's part of one step at a time, in fresh memory (see `ChunkedFeed`)."""
        loader = DataLoader(
            self._dataset,
            batch_sampler=_Rows(self._count, sharing, samples),
            pin_memory=pin,
            # of its own: the loader's draw must not shift the numbers that training draws
            generator=torch.Generator().manual_seed(sharing.seed),
            **self._options,
        )
        plan = _plan(self._count, sharing, samples)
        for batch, (stretch, cut, rows) in zip(loader, plan, strict=False):
            arrays, target = self._parts(batch, len(cut.columns))
            mine = everyone = None
            if self._units is not None:
                everyone = self._units[rows]
                mine = everyone[cut.columns]
            yield batches(
                Examples(arrays, target, mine),
                stretch,
                sizes=cut.sizes,
                weights=cut.weights,
                units=None if everyone is None else everyone.numpy(),
            )

    def _parts(self, batch: Any, count: int) -> tuple[dict[str, Tensor], Tensor]:
        """Return the arrays and the target of what the collate function made."""
        try:
            inputs, target = batch
            arrays = {self._name: inputs} if isinstance(inputs, Tensor) else dict(inputs)
            lengths = {len(tensor) for tensor in (*arrays.values(), target)}
        except (TypeError, ValueError) as error:
            raise _unfit(self._dataset, f"a {type(batch).__name__}") from error
        if lengths != {count} or not all(isinstance(a, Tensor) for a in (*arrays.values(), target)):
            raise _unfit(self._dataset, f"lengths {sorted(lengths)} for {count} items")
        return arrays, target.to(self._type)


class _Rows:
    """The rows of this rank's part of each step: what a DataLoader calls a batch sampler."""

    def __init__(self, count: int, sharing: Sharing, samples: int) -> None:
        self._place = (count, sharing, samples)

    def __iter__(self) -> Iterator[list[int]]:
        for _, cut, rows in _plan(*self._place):
            yield rows[cut.columns].tolist()


def _plan(count: int, sharing: Sharing, samples: int) -> Iterator[tuple[Stretch, Cut, Tensor]]:
    """Yield each step with its cut and its rows, those of all ranks."""
    epoch = -1
    for stretch in stretches(count=count, batch_size=sharing.batch_size, samples=samples, most=1):
        if stretch.epoch != epoch:
            epoch = stretch.epoch
            drawn = order(seed=sharing.seed, epoch=epoch, count=count)
        yield stretch, Cut.of(sharing, stretch.size), drawn[stretch.first : stretch.last]


def _unfit(dataset: Dataset[Any], found: str) -> ConfigurationError:
    return ConfigurationError(
        f"{type(dataset).__name__} gives batches of {found}, not (dict of tensors, target) or "
        "(tensor, target)",
        hint="give the items that shape, or a collate function that does",
    )
