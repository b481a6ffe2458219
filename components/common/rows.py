"""Rows of a split, as data frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from components.common.layout import fetch_object, put_object
from components.common.records import StepContext
from components.common.settings import ProjectSettings
from infra.store import ObjectStore
from training_core.errors import StoppedByGate

PARTS = ("train", "validation", "holdout")


def write_frame(store: ObjectStore, frame: pd.DataFrame, scratch: Path) -> str:
    """Store a frame as Parquet under its content hash and return the hash."""
    scratch.parent.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(scratch, index=False, compression="zstd")
    try:
        return put_object(store, scratch)
    finally:
        scratch.unlink()


def read_part(context: StepContext, splits: dict[str, Any], part: str) -> pd.DataFrame:
    """Return the rows of train, validation or holdout."""
    path = fetch_object(context.store, splits["parts"][part]["sha256"], context.cache)
    return pd.read_parquet(path)


def sample_part(
    context: StepContext, splits: dict[str, Any], part: str, *, rows: int
) -> pd.DataFrame:
    """Return that many rows of a part in random order, spread evenly over it; memory is bounded."""
    import pyarrow as pa
    from pyarrow import parquet

    path = fetch_object(context.store, splits["parts"][part]["sha256"], context.cache)
    found, passed = [], 0
    with parquet.ParquetFile(path) as file:
        stride = max(1, -(-file.metadata.num_rows // rows))
        for batch in file.iter_batches():
            places = np.arange(-passed % stride, len(batch), stride)
            found.append(batch.take(pa.array(places)))
            passed += len(batch)
        table = pa.Table.from_batches(found, schema=file.schema_arrow)
    frame: pd.DataFrame = table.to_pandas().sample(frac=1, random_state=0)
    return frame


def holdout_times(context: StepContext, splits: dict[str, Any]) -> pd.DataFrame:
    """Return the holdout with its time column alone, or none: enough to ask who has seen it."""
    path = fetch_object(context.store, splits["parts"]["holdout"]["sha256"], context.cache)
    column = context.project.settings.data.time_column
    return pd.read_parquet(path, columns=[column] if column else [])


def clusters_of(frame: pd.DataFrame, settings: ProjectSettings) -> pd.Series[Any]:
    """Return each row's cluster: its day (UTC), its own number, or what a column says.

    Raises:
        StoppedByGate: The data lacks that column.
    """
    cluster, column = settings.decision.cluster, settings.data.time_column
    if cluster == "row" or (cluster == "day" and column is None):
        return pd.Series(range(len(frame)), index=frame.index)
    if cluster == "day" and column is not None:
        days: pd.Series[Any] = times_of(frame, column).dt.floor("D")
        return days
    if cluster not in frame:
        raise StoppedByGate(
            f"the data lacks the column {cluster!r}, by which decision.cluster draws rows",
            hint="correct decision.cluster: day, row, or a column",
        )
    told: pd.Series[Any] = frame[cluster].astype(str)
    return told


def times_of(frame: pd.DataFrame, column: str) -> pd.Series[Any]:
    """Return a time column as UTC timestamps.

    Raises:
        StoppedByGate: It is missing or cannot be read as time.
    """
    if column not in frame:
        raise StoppedByGate(
            f"the data lacks the time column {column!r}",
            hint="correct data.time_column, or ask where the column went",
        )
    times = pd.to_datetime(frame[column], utc=True, errors="coerce")
    if times.isna().any():
        raise StoppedByGate(
            f"{int(times.isna().sum())} rows have no readable time in {column!r}",
            hint="every row needs a time; put an expectation on the column to see which",
        )
    return times
