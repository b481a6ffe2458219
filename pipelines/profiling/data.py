"""The planned training of a project, on the newest run's split or on a sample of its data."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from components.common.layout import fetch_object, home, project_store
from components.common.project import Project
from components.common.records import threads_of
from infra.store import ObjectStore
from pipelines.splits import newest_splits

if TYPE_CHECKING:
    from training_core.profiling.planned import Planned
    from training_core.task import Task


@dataclass(frozen=True)
class Data:
    """Where the rows come from.

    Attributes:
        train, validation: Parquet files.
        rows, validation_rows: Of the whole parts, where the files hold a sample.
        words: Where they come from, for people.
    """

    train: Path
    validation: Path
    rows: int
    validation_rows: int
    words: str


@contextmanager
def planned_training(project: Project) -> Iterator[tuple[Planned, str]]:
    """Yield the training as it is planned, and where its data comes from, in words.

    Raises:
        ConfigurationError: The task or the settings are wrong.
        StoppedByGate: There are no rows to train with.
        OutsideError: The data or the store is out of reach.
    """
    settings = project.settings.training
    # read by torch and BLAS when they are imported, which is now
    os.environ.setdefault("OMP_NUM_THREADS", str(threads_of(settings)))
    os.environ.setdefault("KINETO_LOG_LEVEL", "9")  # its words are for its developers
    import pandas as pd
    import torch

    from components.train_distributed.feeding import first_examples, train_feed
    from training_core.examples import Examples
    from training_core.parallel.choose import choose_device
    from training_core.parallel.single import SingleProcess
    from training_core.profiling.planned import Planned

    torch.set_num_threads(threads_of(settings))
    task = project.task()
    with TemporaryDirectory(prefix="evertrain-profile-") as name:
        data = data_of(project, task, Path(name))
        strategy = SingleProcess(choose_device(settings.device))
        feed, preprocessor = train_feed(task, data.train, settings, strategy, Path(name))
        validation = Examples.from_frame(task, preprocessor, pd.read_parquet(data.validation))
        yield (
            Planned(
                task=task,
                preprocessor=preprocessor,
                feed=feed,
                examples=first_examples(feed, seed=settings.seed),
                validation=validation,
                settings=settings,
                rows=data.rows,
                validation_rows=data.validation_rows,
            ),
            data.words,
        )


def data_of(project: Project, task: Task, folder: Path) -> Data:
    """Return the newest run's split, or a sample of the data, divided as a run would."""
    found = newest_split(project, project_store(project))
    return found or _sample(project, task, folder)


def newest_split(project: Project, store: ObjectStore) -> Data | None:
    """Return the split of the newest run that has one, brought here; None: no run has."""
    found = newest_splits(store)
    if found is None:
        return None
    parts, cache = found.splits["parts"], home(project) / "cache"
    train, validation = (
        fetch_object(store, parts[name]["sha256"], cache) for name in ("train", "validation")
    )
    words = f"{parts['train']['rows']:,} rows of train; the split of run {found.run}"
    return Data(train, validation, 0, 0, words)


def _sample(project: Project, task: Task, folder: Path) -> Data:
    from pipelines.check_rows import read_rows

    rows = read_rows(project, task)
    files = folder / "train.parquet", folder / "validation.parquet"
    for file, frame in zip(files, (rows.train, rows.validation), strict=True):
        frame.to_parquet(file)
    share = rows.planned / max(1, len(rows.train))
    return Data(
        *files,
        rows=rows.planned,
        validation_rows=round(share * len(rows.validation)),
        words=f"{len(rows.train):,} rows of train, a sample of {rows.planned:,}; {rows.read:,} of "
        f"{rows.objects:,} objects read; {rows.divided}",
    )
