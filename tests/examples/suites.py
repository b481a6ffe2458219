"""Rows held against a project's suite, as validate_data does it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from components.common.data_settings import DataSettings
from components.common.tables import LocalObject, add_view, open_tables
from components.validate_data.expectations import validate


def critical_failures(
    rows: pd.DataFrame, suite: Path, folder: Path, *, schema: pa.Schema | None = None
) -> list[str]:
    """Return the critical expectations that the rows do not fulfil."""
    file = folder / "rows.parquet"
    pq.write_table(pa.Table.from_pandas(rows, schema=schema, preserve_index=False), file)
    settings = DataSettings(source="data", row_key=["id"])
    with open_tables(settings, readable=[folder], scratch=folder / "scratch") as connection:
        add_view(connection, "rows", [LocalObject("rows", file, len(rows))])
        seen = validate(connection, "rows", suite)
    return [e.name for e in seen if not e.success and e.severity == "critical"]
