"""The parts as Parquet files: the same rows make the same bytes."""

from __future__ import annotations

from pathlib import Path

import duckdb

from components.common.rows import PARTS
from components.common.settings import ProjectSettings
from components.common.tables import NUMBER, OBJECT, LocalObject, columns_of, quoted, text
from components.common.values import utc
from components.split_data.sides import SIDE, SIDED, Division


def write_parts(
    connection: duckdb.DuckDBPyConnection,
    division: Division,
    *,
    settings: ProjectSettings,
    folder: Path,
    kept: str = "kept",
) -> dict[str, LocalObject]:
    """Write train, validation and holdout, each sorted by time and row key.

    Rows of one time and key follow the object they came from and their number in it, so the order
    is the same on every run, and so is the file's hash: whatever the threads and the memory.

    Args:
        connection: With the view `sided`.
        division: What each part holds.
        settings: Of the project.
        folder: Where the files are made; the connection may write there.
        kept: The view whose columns they have.
    """
    columns = columns_of(connection, kept)
    order = [quoted(name) for name in settings.data.row_key]
    if settings.data.time_column:
        order.insert(0, utc(settings.data.time_column, columns))
    order += [OBJECT, NUMBER]
    written = {}
    for part in PARTS:
        path = folder / f"{part}.parquet"
        connection.execute(
            f"COPY (SELECT {', '.join(map(quoted, columns))} FROM {SIDED} "
            f"WHERE {SIDE} = {text(part)} ORDER BY {', '.join(order)}) "
            f"TO {text(str(path))} (FORMAT parquet, COMPRESSION zstd)"
        )
        written[part] = LocalObject(key=part, path=path, rows=division.parts[part].rows)
    return written
