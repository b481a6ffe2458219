"""From the raw rows of the train split to how often each is drawn."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from training_core.errors import ConfigurationError
from training_core.feeds.sampling import Sampling, sampling_of
from training_core.settings import TrainingSettings
from training_core.task import Task


def sampling_from(
    frame: pd.DataFrame, task: Task, settings: TrainingSettings, *, time_column: str | None
) -> Sampling | None:
    """Return how often each row is drawn; None, and nothing is computed: once an epoch.

    Args:
        frame: The train split's raw rows.
        task: Gives targets and units.
        settings: Of the training.
        time_column: Says when a row came to be, if one does.

    Raises:
        ConfigurationError: A column that is needed is not there, or has no numbers in some rows.
    """
    wanted = settings.sampling
    if not wanted.active:
        return None
    columns: dict[Literal["weight", "age", "difficulty"], NDArray[Any]] = {}
    if wanted.weight_column:
        columns["weight"] = _numbers(frame, wanted.weight_column, "weight_column")
    if wanted.half_life_days:
        if time_column is None:
            raise ConfigurationError(
                "training.sampling.half_life_days is set, and data.time_column is not",
                hint="name the column that says when a row came to be: data.time_column",
            )
        times = pd.to_datetime(_column(frame, time_column, "half_life_days"), utc=True)
        columns["age"] = _whole((times.max() - times).dt.total_seconds(), time_column)
    if wanted.difficulty_column and wanted.curriculum == "column":
        columns["difficulty"] = _numbers(frame, wanted.difficulty_column, "difficulty_column")
    elif wanted.difficulty_column:
        values = _column(frame, wanted.difficulty_column, "difficulty_column")
        columns["difficulty"] = np.array([_length(value) for value in values])
    target = task.target(frame)
    units = task.units(torch.from_numpy(target.copy()))
    return sampling_of(
        wanted,
        epochs=settings.epochs,
        target=target,
        units=None if units is None else units.numpy(),
        columns=columns,
    )


def _column(frame: pd.DataFrame, name: str, setting: str) -> pd.Series[Any]:
    if name not in frame.columns:
        raise ConfigurationError(
            f"training.sampling.{setting}: the train split has no column {name!r}; it has: "
            f"{', '.join(map(str, frame.columns))}"
        )
    return frame[name]


def _numbers(frame: pd.DataFrame, name: str, setting: str) -> NDArray[np.float64]:
    return _whole(pd.to_numeric(_column(frame, name, setting), errors="coerce"), name)


def _whole(values: pd.Series[Any], name: str) -> NDArray[np.float64]:
    found = np.asarray(values, np.float64)
    missing = int(np.isnan(found).sum())
    if missing:
        raise ConfigurationError(
            f"training.sampling needs column {name!r}, which has no value of use in {missing} of "
            f"{len(found)} rows",
            hint="fill it where the data is made, or name another column",
        )
    return found


def _length(value: Any) -> int:
    """Return the length of a text or a list; nothing has none."""
    return len(value) if hasattr(value, "__len__") else 0
