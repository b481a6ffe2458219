"""Rows of a snapshot in DuckDB: queries over Parquet files, nothing loaded that is not asked for.

    with open_tables(settings.data, scratch=folder) as connection:
        add_view(connection, "rows", objects)
        connection.sql("SELECT count(*) FROM rows").fetchone()

A connection reads the files it was given and no others, loads no extension, and cannot be
configured by a query: a suite may contain SQL.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from components.common.data_settings import DataSettings
from training_core.errors import ConfigurationError, StoppedByGate

OBJECT, NUMBER = "_object", "_row"


@dataclass(frozen=True)
class LocalObject:
    """An object of a snapshot as a Parquet file on this machine.

    Attributes:
        key: In the source.
        path: The file; named after the content, whatever the key says.
        rows: In it.
    """

    key: str
    path: Path
    rows: int


@contextmanager
def open_tables(
    settings: DataSettings, *, readable: Sequence[Path], scratch: Path
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database in memory that spills to a folder of its own below `scratch`.

    Args:
        settings: How much memory queries get.
        readable: Folders whose files may be read; the spill folder may be written, too.
        scratch: Created where it is missing; left as it was.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    spill = Path(tempfile.mkdtemp(prefix="query-", dir=scratch))
    connection = duckdb.connect(
        config={
            "memory_limit": settings.memory,
            "threads": os.cpu_count() or 1,
            "temp_directory": str(spill),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "preserve_insertion_order": False,
        }
    )
    try:
        connection.execute("SET TimeZone = 'UTC'")
        # read ahead while Python counts: with its usual megabyte DuckDB waits for us
        connection.execute("SET streaming_buffer_size = '64MB'")
        allowed = [str(folder.absolute()) for folder in (*readable, spill)]
        connection.execute("SET allowed_directories = $1", [allowed])
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection
    finally:
        connection.close()
        shutil.rmtree(spill, ignore_errors=True)


def add_view(
    connection: duckdb.DuckDBPyConnection, name: str, objects: Sequence[LocalObject]
) -> None:
    """Name the rows of some objects, which share one schema.

    `name` has the columns of the data; `located_NAME` also `_object`, the file that a row is in,
    and `_row`, its number there from 0.

    Raises:
        StoppedByGate: A column of the data has one of those two names.
    """
    files = ", ".join(text(str(o.path)) for o in objects)
    read = f"read_parquet([{files}], union_by_name = true)"
    there = {row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {read}").fetchall()}
    if taken := there & {OBJECT, NUMBER}:
        raise StoppedByGate(
            f"the data has a column {sorted(taken)[0]!r}, a name that is used here",
            hint="rename the column at its source",
        )
    connection.execute(
        f"CREATE VIEW {quoted('located_' + name)} AS SELECT *, filename AS {OBJECT}, "
        f"file_row_number AS {NUMBER} FROM {read}"
    )
    connection.execute(f"CREATE VIEW {quoted(name)} AS SELECT * FROM {read}")


@contextmanager
def naming_damage(
    connection: duckdb.DuckDBPyConnection, objects: Sequence[LocalObject]
) -> Iterator[None]:
    """Where a query fails, look for an object that cannot be read, and name it.

    A file may be whole at both ends and damaged between them: only reading all of it shows that.

    Raises:
        StoppedByGate: An object cannot be read.
    """
    try:
        yield
    except (duckdb.Error, ConfigurationError) as fault:
        for o in objects:
            read = f"SELECT max(hash(COLUMNS(*))) FROM read_parquet({text(str(o.path))})"
            try:
                connection.execute(read)
            except duckdb.Error as error:
                raise StoppedByGate(
                    f"{o.key} is damaged: {str(error).splitlines()[0]}",
                    hint="write the object again",
                ) from fault
        raise


def columns_of(connection: duckdb.DuckDBPyConnection, view: str) -> dict[str, str]:
    """Return the columns of a view, in order, with their DuckDB types."""
    described = connection.execute(f"DESCRIBE {quoted(view)}").fetchall()
    return {row[0]: row[1] for row in described}


def quoted(name: str) -> str:
    """A column's or view's name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A string in SQL."""
    return "'" + value.replace("'", "''") + "'"
