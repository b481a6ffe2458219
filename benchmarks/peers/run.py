"""What a contestant gets, what it gives back, and what the hand-written ones share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from benchmarks.networks import Network
from benchmarks.workloads import KEEP_BEST, Workload

Rows = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Run:
    """One training to be done.

    Attributes:
        model: With its initial weights; the contestant trains this very object.
        folder: An empty one, for checkpoints.
        rank, world_size: Of this process.
        accumulation: Microbatches of `workload.batch_size` a step, on each rank.
        features: Whether to evaluate and to keep the best checkpoints.
        log_every: Steps between two looks at the loss.
    """

    workload: Workload
    model: Network
    folder: Path
    rank: int = 0
    world_size: int = 1
    accumulation: int = 1
    features: bool = True
    log_every: int = 50

    @property
    def steps(self) -> int:
        """Optimiser steps, warm-up included."""
        return self.workload.total_steps

    @property
    def step_size(self) -> int:
        """Examples a step, over all ranks and microbatches."""
        return self.workload.batch_size * self.accumulation * self.world_size

    def order(self) -> Tensor:
        """Return this rank's rows, microbatch after microbatch: int64 [its samples]."""
        whole = self.workload.order(self.steps * self.step_size)
        return whole.view(self.steps, self.world_size, -1)[:, self.rank].flatten()


@dataclass
class Trained:
    """What was done, to be checked.

    Attributes:
        losses: One a log interval.
        evaluations: Validation losses.
        checkpoints: Number of those that are left.
    """

    losses: list[float] = field(default_factory=list)
    evaluations: list[float] = field(default_factory=list)
    checkpoints: int = 0


Contestant = Callable[[Run], Trained]


# ---- data, in the good hand-written form: no collation, one gather a batch -----------------------


class RowsDataset(Dataset[Rows]):
    """Rows in memory, gathered a batch at a time."""

    def __init__(self, inputs: Tensor, target: Tensor) -> None:
        self.inputs, self.target = inputs, target

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitems__(self, indices: list[int]) -> Rows:
        rows = torch.tensor(indices)  # a list as an index costs half as much again
        return self.inputs[rows], self.target[rows]


class GivenOrder(Sampler[int]):
    """The rows of a whole run as one epoch, so that nobody pays for the start of another."""

    def __init__(self, order: Tensor) -> None:
        self.order = order

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[int]:
        return iter(self.order.tolist())


def as_it_is(batch: Rows) -> Rows:
    """Collate nothing."""
    return batch


def loader_of(run: Run, collate: Callable[[Rows], object] = as_it_is) -> DataLoader[Rows]:
    """Return the train split in the run's order, in microbatches."""
    return DataLoader(
        RowsDataset(run.workload.inputs, run.workload.target),
        batch_size=run.workload.batch_size,
        sampler=GivenOrder(run.order()),
        collate_fn=collate,
    )


def validation_of(run: Run, collate: Callable[[Rows], object] = as_it_is) -> DataLoader[Rows]:
    """Return the validation split as one batch."""
    inputs, target = run.workload.validation
    return DataLoader(RowsDataset(inputs, target), batch_size=len(inputs), collate_fn=collate)


# ---- checkpoints of the trainers that have no rule of their own ----------------------------------


class Best:
    """Keeps the best checkpoints, as one writes it by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept: list[tuple[float, Path]] = []

    def add(
        self, loss: float, step: int, save: Callable[[Path], object], remove: Callable[[Path], None]
    ) -> None:
        """Save if it is one of the best, and remove the one that no longer is."""
        if len(self.kept) == KEEP_BEST and loss >= self.kept[-1][0]:
            return
        path = self.folder / f"step-{step}"
        save(path)
        self.kept = sorted([*self.kept, (loss, path)])
        for _, worse in self.kept[KEEP_BEST:]:
            remove(worse)
        del self.kept[KEEP_BEST:]
