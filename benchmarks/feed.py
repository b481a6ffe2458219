"""Samples a second that our feeds give, beside DataLoader: `make bench-feed`.

54 float32 features and a target, batches of 256, one thread, no work done on them. In each round,
in random order: our feed from memory; our feed from `.npy` files that the page cache holds;
DataLoader over a TensorDataset, for a tenth of the samples; DataLoader over a dataset with
`__getitems__`. Both without workers, which make them slower where rows are this small. Beside them,
to judge how quiet the machine is: the rows alone, gathered by `index_select` 16,384 at a time into
memory that is used again, without targets or batches.

Figures: memory_msamples, disk_msamples, dataloader_msamples (the faster of the two); millions of
samples a second.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.reporting import last_line, table, words_of
from training_core.examples import Examples
from training_core.feeds.batches import Feed, Sharing
from training_core.feeds.blocks import BlockFeed
from training_core.feeds.memory import MemoryFeed
from training_core.feeds.npy import open_blocks, write_blocks

FEATURES = 54
BATCH = 256
SHARING = Sharing.of(batch_size=BATCH, microbatches=1, rank=0, world_size=1, seed=0)

RAW = "rows alone, index_select"
MEMORY = "ours, memory"
DISK = "ours, npy on disk"
DEFAULT = "DataLoader"
GETITEMS = "DataLoader, __getitems__"


class Rows(TensorDataset):
    """A dataset that fetches a batch's rows at once."""

    def __getitems__(self, rows: list[int]) -> tuple[Tensor, ...]:
        return tuple(tensor[rows] for tensor in self.tensors)


def as_fetched(batch: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Collate what `__getitems__` has put together already."""
    return batch


def epochs_of(feed: Feed) -> Callable[[], int]:
    """Return a function that takes an epoch's steps and returns the samples: orders change."""
    steps = feed.steps(SHARING, samples=0)
    count = -(-len(feed) // BATCH)

    def epoch() -> int:
        for _ in islice(steps, count):
            pass
        return len(feed)

    return epoch


def loading(loader: DataLoader[tuple[Tensor, ...]], share: float) -> Callable[[], int]:
    """Return a function that takes a share of an epoch's batches and returns the samples."""
    count = int(len(loader) * share)

    def part() -> int:
        for _ in islice(loader, count):
            pass
        return count * BATCH

    return part


def gathering(features: Tensor) -> Callable[[], int]:
    """Return a function that gathers whole buffers of rows and returns how many."""
    buffer = torch.empty(64 * BATCH, features.shape[1])
    rows = torch.randperm(len(features)).split(len(buffer))[:-1]

    def gather() -> int:
        for part in rows:
            torch.index_select(features, 0, part, out=buffer)
        return len(rows) * len(buffer)

    return gather


def contestants(samples: int, folder: Path) -> Iterator[tuple[str, Callable[[], int]]]:
    """Yield each contestant's name, and a function that gives samples and returns how many."""
    generator = np.random.default_rng(0)
    # numpy's, as preprocessors make them: their memory comes in huge pages
    features = torch.from_numpy(generator.standard_normal((samples, FEATURES), dtype=np.float32))
    target = torch.from_numpy(generator.standard_normal(samples, dtype=np.float32))
    examples = Examples({"features": features}, target)
    write_blocks(folder, [examples])
    yield RAW, gathering(features)
    yield MEMORY, epochs_of(MemoryFeed(examples))
    yield DISK, epochs_of(BlockFeed([open_blocks(folder)]))
    plain = TensorDataset(features, target)
    yield DEFAULT, loading(DataLoader(plain, batch_size=BATCH, shuffle=True), 0.1)
    rows = Rows(features, target)
    yield (
        GETITEMS,
        loading(DataLoader(rows, batch_size=BATCH, shuffle=True, collate_fn=as_fetched), 1.0),
    )


def main() -> None:
    """Run the rounds and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=9, help="rounds")
    parser.add_argument("--samples", type=int, default=1_000_000, help="rows of the data")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rates: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        racing = list(contestants(arguments.samples, Path(folder)))
        for _, give in racing:
            give()  # once to warm up: pages, caches
        for number in range(arguments.count):
            for name, give in random.Random(number).sample(racing, len(racing)):
                began = time.perf_counter()
                given = give()
                rates.setdefault(name, []).append(given / (time.perf_counter() - began) / 1e6)
            print(f"round {number + 1} of {arguments.count}", file=sys.stderr)
    lines = [[name, words_of(rates[name])] for name, _ in racing]
    print(table(["feed", "million samples a second, median (range)"], lines))
    best = max(DEFAULT, GETITEMS, key=lambda name: statistics.median(rates[name]))
    figures = {
        "memory_msamples": rates[MEMORY],
        "disk_msamples": rates[DISK],
        "dataloader_msamples": rates[best],
    }
    print(last_line("feed", figures))


if __name__ == "__main__":
    main()
