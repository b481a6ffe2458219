"""The splits of the small project, as split_data leaves them."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pandas as pd

from components.common.labels import Label
from components.common.layout import put_object
from components.common.project import open_project
from components.common.tables import LocalObject, add_view, open_tables
from components.split_data.parts import write_parts
from components.split_data.sides import divide, seen_by_training
from infra.folder import FolderStore
from infra.store import ObjectStore
from tests.small_project.make_data import month


def write_splits(
    project: Path, store: ObjectStore | None = None, *, rows: pd.DataFrame | None = None
) -> Path:
    """Divide the first month, put the parts into a store; return their manifest.

    Args:
        project: The project's folder.
        store: None: the folder in the project's home.
        rows: Of another project; None: of this one.
    """
    opened = open_project(project)
    settings, task = opened.settings, opened.task()
    file, rows = project / "rows.parquet", month(1) if rows is None else rows
    rows.to_parquet(file, index=False)
    with open_tables(settings.data, readable=[project], scratch=project / "scratch") as connection:
        keep_all(connection, [LocalObject("rows", file, len(rows))])
        division = divide(connection, settings=settings, label=Label.of(task))
        files = write_parts(connection, division, settings=settings, folder=project)
    store = store or FolderStore(project / ".evertrain" / "store")
    parts = {n: {"sha256": put_object(store, f.path), "rows": f.rows} for n, f in files.items()}
    manifest = project / "splits.json"
    seen = seen_by_training(division.parts, settings)
    manifest.write_text(json.dumps({"parts": parts, "seen": seen}))
    return manifest


def keep_all(connection: duckdb.DuckDBPyConnection, objects: list[LocalObject]) -> None:
    """Make the views `kept` and `located_kept` of all rows, as row rules do that none breaks."""
    add_view(connection, "kept", objects)
