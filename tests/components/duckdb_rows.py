"""Rows as a view of a restricted DuckDB connection, as a step has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pandas as pd

from components.common.data_settings import DataSettings
from components.common.tables import LocalObject, add_view, open_tables

SETTINGS = DataSettings(source="data", row_key=["id"])


@contextmanager
def rows_in_duckdb(folder: Path, *parts: pd.DataFrame) -> Iterator[duckdb.DuckDBPyConnection]:
    """Write each part as an object `part-N` and give a connection with the view `rows`."""
    with open_tables(SETTINGS, readable=[folder], scratch=folder / "scratch") as connection:
        add_view(connection, "rows", write_objects(folder, *parts))
        yield connection


def write_objects(folder: Path, *parts: pd.DataFrame) -> list[LocalObject]:
    """Write each part as a Parquet file."""
    objects = []
    for number, part in enumerate(parts):
        path = folder / f"content-{number}"
        part.to_parquet(path, index=False)
        objects.append(LocalObject(f"data/part-{number}.parquet", path, len(part)))
    return objects
