"""What the tests of feeds share: numbered rows, and the steps that ranks get of them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa
import torch
from torch import Tensor

from training_core.examples import Examples
from training_core.feeds.batches import Feed, Sharing, StepBatch
from training_core.feeds.memory import MemoryFeed


def numbered(count: int, *, first: int = 0, units: bool = False) -> Examples:
    """Examples whose every tensor tells which row it is from."""
    row = torch.arange(first, first + count)
    arrays = {"row": row, "pair": torch.stack([row * 2.0, row * 3.0], 1)}
    return Examples(arrays, (row % 7).float(), (row % 5 + 1).float() if units else None)


@dataclass(frozen=True)
class Noted:
    """A rank's part of a step, as plain values: the batch's memory is used again."""

    parts: list[list[int]]
    units: float
    samples: int
    samples_after: int

    @property
    def rows(self) -> list[int]:
        return [row for part in self.parts for row in part]


def noted(step: StepBatch) -> Noted:
    """Check a batch against the rows that it says it holds, and note which count."""
    parts = []
    for microbatch in step.microbatches:
        row = microbatch.examples.arrays["row"]
        assert len(microbatch.examples) >= 1
        assert torch.equal(microbatch.examples.arrays["pair"], torch.stack([row * 2.0, row * 3], 1))
        assert torch.equal(microbatch.examples.target, (row % 7).float())
        if microbatch.examples.units is not None:
            assert torch.equal(microbatch.examples.units, (row % 5 + 1).float())
        if microbatch.weight is not None:
            assert microbatch.weight.tolist() == [0.0]
            assert len(row) == 1
        parts.append(row.tolist() if microbatch.weight is None else [])
    return Noted(parts, step.units, step.samples, step.samples_after)


@dataclass(frozen=True)
class Case:
    """A feed to be tested.

    Attributes:
        name: Of the case.
        make: Returns a feed of `numbered(count, units=units)`, from count, rank and world size.
        units: Whether examples have units.
        strided: Whether part p of a step holds its samples p, p + parts, …
    """

    name: str
    make: Callable[[int, int, int], Feed]
    units: bool = False
    strided: bool = True

    def ranks(
        self,
        count: int,
        steps: int,
        *,
        batch_size: int,
        microbatches: int = 1,
        world_size: int = 1,
        samples: int = 0,
        seed: int = 3,
    ) -> list[list[Noted]]:
        """Return the steps of each rank."""
        found = []
        for rank in range(world_size):
            sharing = Sharing.of(
                batch_size=batch_size,
                microbatches=microbatches,
                rank=rank,
                world_size=world_size,
                seed=seed,
            )
            feed = self.make(count, rank, world_size)
            assert len(feed) == count
            iterator = feed.steps(sharing, samples=samples)
            found.append([noted(step) for step in islice(iterator, steps)])
        return found


class Foreign:
    """A feed that knows nothing of chunks, and spoils each batch when the next is asked for."""

    def __init__(self, count: int) -> None:
        self._inner = MemoryFeed(numbered(count))

    def __len__(self) -> int:
        return len(self._inner)

    def steps(self, sharing: Sharing, *, samples: int) -> Generator[StepBatch, None, None]:
        for step in self._inner.steps(sharing, samples=samples):
            yield step
            for microbatch in step.microbatches:
                microbatch.examples.arrays["row"].fill_(-1)


class Pairs(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """A Dataset as a user writes it; it notes what it is asked for."""

    def __init__(self, count: int) -> None:
        self.examples = numbered(count)
        self.asked: list[int] = []

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, row: int) -> tuple[dict[str, Tensor], float]:
        self.asked.append(row)
        arrays = {name: array[row] for name, array in self.examples.arrays.items()}
        return arrays, float(self.examples.target[row])


def write_arrow(file: Path, examples: Examples, *, compression: str | None = None) -> None:
    """Write record batches of 7 rows, the target as float64 and the units as int32."""
    columns = {
        name: pa.FixedSizeListArray.from_arrays(array.flatten().numpy(), array.shape[1])
        if array.ndim > 1
        else pa.array(array.numpy())
        for name, array in examples.arrays.items()
    }
    columns["target"] = pa.array(examples.target.double().numpy())
    if examples.units is not None:
        columns["units"] = pa.array(examples.units.int().numpy())
    table = pa.table(columns)
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(str(file), table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=7)
