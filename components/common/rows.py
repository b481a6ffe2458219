"""Rows of a snapshot and of a split, as data frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from components.common.data_settings import RowRule
from components.common.layout import fetch_object, put_object
from components.common.local import fetch_snapshot
from components.common.manifest import Manifest
from components.common.records import StepContext
from components.common.settings import ProjectSettings
from infra.store import ObjectStore
from training_core.errors import StoppedByGate

PARTS = ("train", "validation", "holdout")


def read_snapshot(context: StepContext, manifest: Manifest) -> pd.DataFrame:
    """Return all rows of a snapshot whose objects are known to share one schema."""
    tables = [pq.read_table(o.path) for o in fetch_snapshot(context, manifest)]
    frame: pd.DataFrame = pa.concat_tables(tables, promote_options="permissive").to_pandas()
    return frame


def broken_rules(frame: pd.DataFrame, rules: list[RowRule]) -> pd.Series[Any]:
    """Return the first rule that each row breaks, or "" (string, index of the frame)."""
    broken = pd.Series("", index=frame.index, dtype="object")
    for rule in rules:
        if rule.column not in frame:
            raise StoppedByGate(
                f"the row rule {rule.name!r} looks at column {rule.column!r}, which the data lacks",
                hint="correct validation.row_rules, or ask where the column went",
            )
        values = frame[rule.column]
        if not pd.api.types.is_numeric_dtype(values.dtype):
            raise StoppedByGate(
                f"the row rule {rule.name!r} compares column {rule.column!r} with numbers, but the "
                f"data has it as {values.dtype}",
                hint="correct validation.row_rules, or write the data again with numbers",
            )
        bad = pd.Series(False, index=frame.index)
        if rule.minimum is not None:
            bad |= (values < rule.minimum).fillna(False)
        if rule.maximum is not None:
            bad |= (values > rule.maximum).fillna(False)
        broken[bad & (broken == "")] = rule.name
    return broken


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


def days_of(frame: pd.DataFrame, settings: ProjectSettings) -> pd.Series[Any]:
    """Return each row's cluster: its day (UTC), or its own number where rows are drawn."""
    column = settings.data.time_column
    if settings.decision.cluster == "row" or column is None:
        return pd.Series(range(len(frame)), index=frame.index)
    days: pd.Series[Any] = times_of(frame, column).dt.floor("D")
    return days


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
