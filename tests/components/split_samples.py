"""Snapshots that are divided, written and proved as split_data does it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd

from components.common.data_figures import Proof
from components.common.labels import Label
from components.common.project import open_project
from components.common.settings import ProjectSettings
from components.common.tables import LocalObject, add_view, open_tables
from components.split_data.parts import write_parts
from components.split_data.proof import prove_apart
from components.split_data.sides import Division, divide
from tests.small_project.splits import keep_all

PARTS = ("train", "validation", "holdout")
SHARES = "holdout: 0.2, validation: 0.1"


def settings_of(project: Path, *changes: str) -> ProjectSettings:
    return open_project(project, overrides=list(changes)).settings


def by(project: Path, rule: str) -> ProjectSettings:
    return settings_of(project, f"split={{by: {rule}, {SHARES}}}")


def target(frame: pd.DataFrame) -> np.ndarray:
    return np.asarray(pd.to_numeric(frame["bought"], errors="coerce"), dtype=np.float32)


LABEL = Label("binary", ("bought",), target)


@dataclass
class Made:
    """A snapshot, divided and written."""

    connection: duckdb.DuckDBPyConnection
    division: Division
    files: dict[str, Path]

    @property
    def frames(self) -> dict[str, pd.DataFrame]:
        return {name: pd.read_parquet(path) for name, path in self.files.items()}

    def sides(self, key: str = "id") -> dict[object, str]:
        return {k: name for name, frame in self.frames.items() for k in frame[key]}


@contextmanager
def split(rows: pd.DataFrame, settings: ProjectSettings, folder: Path) -> Iterator[Made]:
    folder.mkdir(exist_ok=True)
    source = folder / "rows.parquet"
    rows.to_parquet(source, index=False)
    with open_tables(settings.data, readable=[folder], scratch=folder / "scratch") as connection:
        keep_all(connection, [LocalObject("rows", source, len(rows))])
        division = divide(connection, settings=settings, label=LABEL)
        files = write_parts(connection, division, settings=settings, folder=folder)
        yield Made(connection, division, {name: file.path for name, file in files.items()})


def prove(made: Made, settings: ProjectSettings) -> list[Proof]:
    """Prove it of the files as they are now."""
    for name, path in made.files.items():
        made.connection.execute(f'DROP VIEW IF EXISTS {name}; DROP VIEW IF EXISTS "located_{name}"')
        add_view(made.connection, name, [LocalObject(name, path, 0)])
    parts = made.division.parts
    return prove_apart(made.connection, settings=settings, parts=parts, label=LABEL)


def divided(rows: pd.DataFrame, settings: ProjectSettings, folder: Path) -> Made:
    with split(rows, settings, folder) as made:
        return made
