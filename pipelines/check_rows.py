"""Rows for `evertrain check`: a sample of what a run would train and validate on, nothing stored.

The newest objects are read as a snapshot reads them, row rules put rows aside, and the project's
split divides the rest. Tasks of every kind are welcome: only a label that is one number is looked
up in the database, others once their rows are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from components.common.cache import Cache
from components.common.labels import Label, label_columns
from components.common.local import THREADS, bring_unknown, refuse_mixed_schemas
from components.common.project import Project
from components.common.row_rules import cut
from components.common.settings import ProjectSettings
from components.common.sources import open_source
from components.common.tables import (
    LocalObject,
    add_view,
    columns_of,
    naming_damage,
    open_tables,
    quoted,
    text,
)
from components.common.targets import add_targets, labelled, lost_labels
from components.common.values import utc
from components.snapshot_data.listing import list_objects
from components.split_data.sides import SIDE, SIDED, side_of
from training_core.checks.lost_labels import LostLabel
from training_core.checks.lost_labels import lost_labels as lost_of
from training_core.errors import StoppedByGate
from training_core.examples import without_label
from training_core.task import Task

MOST_BYTES = 512 * 2**20  # of objects that are read; one is read whatever its size
MOST_OBJECTS = 1000
_ONE_NUMBER = ("binary", "multiclass", "regression")


@dataclass(frozen=True)
class Rows:
    """What the checks look at.

    Attributes:
        train, validation: Labelled raw rows, at most `checks.rows` each.
        planned: Labelled rows of the whole train part, as far as the objects read tell.
        read, objects: How many objects were read, and how many there are.
        divided: How validation was found, in words.
        lost: Values of the label that the task has no target for.
    """

    train: pd.DataFrame
    validation: pd.DataFrame
    planned: int
    read: int
    objects: int
    divided: str
    lost: list[LostLabel]


def read_rows(project: Project, task: Task) -> Rows:
    """Read and divide a sample of the project's data.

    Raises:
        StoppedByGate: There is nothing to read, an object cannot be read, or no row has a label.
        ConfigurationError: Settings of the data make no sense.
    """
    settings = project.settings
    if settings.data.types:
        from components.common.conversion import check_types

        check_types(settings.data)
    source = open_source(project.data_source)
    listing = list_objects(source, settings.data)
    keys, share = newest(listing)
    with TemporaryDirectory(prefix="evertrain-check-") as name:
        cache, made = Cache(Path(name) / "objects"), Path(name) / "parts"
        made.mkdir()
        with ThreadPoolExecutor(THREADS) as pool:
            objects = list(
                pool.map(lambda key: bring_unknown(source, cache, key, settings.data), keys)
            )
        refuse_mixed_schemas(objects)
        with (
            open_tables(
                settings.data, readable=[cache.folder, made], scratch=Path(name) / "scratch"
            ) as connection,
            naming_damage(connection, objects),
        ):
            parts = _Parts(connection, objects, settings=settings, task=task, folder=made)
            train, validation, divided = parts.train_and_validation()
            return Rows(
                train=train,
                validation=validation,
                planned=round(parts.planned / share),
                read=len(keys),
                objects=listing.num_rows,
                divided=divided,
                lost=parts.lost,
            )


def newest(listing: pa.Table) -> tuple[list[str], float]:
    """Choose the last objects by key, within `MOST_BYTES` and `MOST_OBJECTS`.

    Neighbours rather than a few from everywhere: a split by time needs days without gaps.

    Returns:
        Their keys, in order, and their share of all bytes.
    """
    keys, sizes = listing["key"].to_pylist(), np.asarray(listing["size"])
    taken = np.cumsum(sizes[::-1][:MOST_OBJECTS])
    count = max(1, int(np.searchsorted(taken, MOST_BYTES, side="right")))
    return keys[-count:], float(max(1, taken[count - 1]) / max(1, sizes.sum()))


class _Parts:
    """The rows of some objects, divided; a frame of each part when it is asked for."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        objects: Sequence[LocalObject],
        *,
        settings: ProjectSettings,
        task: Task,
        folder: Path,
    ) -> None:
        self.connection, self.settings, self.task, self.folder = connection, settings, task, folder
        add_view(connection, "rows", objects)
        cut(connection, "rows", settings.validation.row_rules)
        self.columns = columns_of(connection, "kept")
        source = _with_label(connection, task, self.columns)
        if not self._count(f"SELECT count(*) FROM {source}"):
            raise StoppedByGate(
                f"none of the {self._count('SELECT count(*) FROM rows')} rows that were read has a "
                f"label in {task.label!r}",
                hint="has the feed that brings the labels stopped?",
            )
        side = side_of(connection, source, settings=settings, columns=self.columns)
        connection.execute(
            f"CREATE VIEW {SIDED} AS SELECT located_kept.*, {side} AS {SIDE} FROM {source}"
        )
        self.lost: list[LostLabel] = []
        if task.kind in _ONE_NUMBER:
            self.lost = lost_labels(connection, "kept", Label.of(task))
        self.planned = self._count(f"SELECT count(*) FROM {SIDED} WHERE {SIDE} = 'train'")

    def train_and_validation(self) -> tuple[pd.DataFrame, pd.DataFrame, str]:
        """Draw both; where the project's split leaves one empty, validation is the newest fifth."""
        train, validation = (self._drawn(f"{SIDE} = {text(p)}") for p in ("train", "validation"))
        if len(train) and len(validation):
            return train, validation, "by the project's split"
        every = self._drawn("true")
        if len(every) < 2:
            raise StoppedByGate(
                f"{len(every)} of the rows that were read has a label", hint="bring more data"
            )
        last = len(every) - max(1, len(every) // 5)
        self.planned = self.planned or len(every)
        return every[:last], every[last:], self._fifth()

    def _fifth(self) -> str:
        which = "newest" if self.settings.data.time_column else "last"
        return f"the {which} fifth, for the project's split leaves a part of the rows read empty"

    def _drawn(self, where: str) -> pd.DataFrame:
        """Labelled rows, the same ones each time, ordered by time where there is one."""
        names = ", ".join(map(quoted, self.columns))
        time = self.settings.data.time_column
        order = f"ORDER BY {utc(time, self.columns)}, hash({names})" if time else ""
        path = self.folder / "part.parquet"  # by way of Parquet: types are those of a run's parts
        self.connection.execute(
            f"COPY (SELECT * FROM (SELECT {names} FROM {SIDED} WHERE {where} "
            f"ORDER BY hash({names}) LIMIT {self.settings.checks.rows}) {order}) "
            f"TO {text(str(path))} (FORMAT parquet)"
        )
        frame = pd.read_parquet(path)
        without = _unlabelled(self.task, frame)
        if self.task.kind not in _ONE_NUMBER and without.any():
            self.lost += lost_of(self.task, frame[without], rows=len(frame))
        return frame[~without].reset_index(drop=True)

    def _count(self, query: str) -> int:
        answer = self.connection.execute(query).fetchone()
        assert answer is not None
        return int(answer[0])


def _with_label(connection: duckdb.DuckDBPyConnection, task: Task, columns: dict[str, str]) -> str:
    """SQL for the rows of `located_kept` that have a label, or at least may have one."""
    if task.kind in _ONE_NUMBER:
        label = Label.of(task)
        add_targets(connection, "kept", label)
        return labelled("located_kept", label)
    names = label_columns(task)
    for name in names:
        if name not in columns:
            raise StoppedByGate(
                f"the data lacks the label column {name!r}",
                hint="correct the task's label, or ask where the column went",
            )
    known = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in names)
    return f"(SELECT * FROM located_kept WHERE {known}) AS located_kept"


def _unlabelled(task: Task, frame: pd.DataFrame) -> npt.NDArray[np.bool_]:
    if not len(frame):  # a task need not know what to make of no rows
        return np.zeros(0, dtype=bool)
    return without_label(task.target(frame), kind=task.kind)
