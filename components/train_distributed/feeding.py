"""From the train split's file to a feed: whole in memory, or block by block from disk."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow.parquet as pq

from components.train_distributed.sampling import sampling_from
from training_core.errors import ConfigurationError
from training_core.examples import Examples
from training_core.feeds.batches import Feed, Sharing
from training_core.feeds.blocks import BlockFeed
from training_core.feeds.memory import MemoryFeed
from training_core.feeds.npy import open_blocks, write_blocks
from training_core.parallel.strategy import Strategy
from training_core.settings import TrainingSettings
from training_core.task import Preprocessor, Task

if TYPE_CHECKING:
    from components.train_distributed.teaching import Teacher

_ROWS = 65_536  # turned into examples at once
MOST_BYTES = 4 << 30  # of a teacher's predictions in memory


def train_feed(
    task: Task,
    file: Path,
    settings: TrainingSettings,
    strategy: Strategy,
    cache: Path,
    *,
    time_column: str | None = None,
    teacher: Teacher | None = None,
) -> tuple[Feed, Preprocessor]:
    """Fit the preprocessor on the split and return what feeds the loop.

    With `training.data: disk` the examples are written to blocks in the cache, once on each
    machine, and memory-mapped. The preprocessor is fitted on the whole table in either case, which
    therefore has to fit into memory once, before training.

    Args:
        task, settings, strategy: Of the training.
        file: The train split, Parquet.
        cache: Folder for blocks.
        time_column: Says when a row came to be, if one does.
        teacher: Whose predictions lie beside the examples; None: nobody's.

    Raises:
        ConfigurationError: Columns that `training.sampling` needs are not there, or not of use; or
            the teacher cannot teach this.
    """
    frame = pd.read_parquet(file)
    preprocessor = task.preprocessor().fit(frame)
    sampling = sampling_from(frame, task, settings, time_column=time_column)
    if teacher is not None:
        teacher.prepare(preprocessor)
    if settings.data == "memory":
        examples = Examples.from_frame(task, preprocessor, frame)
        if teacher is not None:
            examples = teacher.ask(frame, examples, most=MOST_BYTES)
        return MemoryFeed(examples, sampling=sampling), preprocessor
    del frame
    state = json.dumps(preprocessor.state_dict(), sort_keys=True)
    taught = f" {teacher.settled.digest}" if teacher is not None else ""
    name = hashlib.sha256(f"{file.name} {state}{taught}".encode()).hexdigest()
    folder = cache / "blocks" / name
    if os.environ.get("LOCAL_RANK", "0") == "0" and not _is_whole(folder):
        write_blocks(folder, _chunks(task, preprocessor, file, teacher))
    strategy.gather(None)  # the others of this machine wait for its first rank
    return BlockFeed([open_blocks(folder)], sampling=sampling), preprocessor


def first_examples(feed: Feed, *, seed: int) -> Examples:
    """Return a random sample of a feed: what training would begin with, the same on every rank.

    16,384 at most: a share of 1 % is then known within a twelfth of itself.
    """
    whole = Sharing.of(
        batch_size=min(len(feed), 16_384), microbatches=1, rank=0, world_size=1, seed=seed
    )
    with closing(feed.steps(whole, samples=0)) as steps:
        return next(steps).microbatches[0].examples.clone()


def _is_whole(folder: Path) -> bool:
    try:
        open_blocks(folder)
    except ConfigurationError:
        return False
    return True


def _chunks(
    task: Task, preprocessor: Preprocessor, file: Path, teacher: Teacher | None
) -> Iterator[Examples]:
    for batch in pq.ParquetFile(file).iter_batches(_ROWS if teacher is None else _ROWS // 8):
        frame = batch.to_pandas()
        examples = Examples.from_frame(task, preprocessor, frame)
        yield examples if teacher is None else teacher.ask(frame, examples)
