"""A sample of the data: some objects of the source, and at most some hundred thousand rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from components.common.cache import Cache
from components.common.data_settings import DataSettings
from components.common.local import bring_unknown, refuse_mixed_schemas
from components.common.sources import SUFFIXES, open_source
from components.common.tables import (
    LocalObject,
    add_view,
    columns_of,
    naming_damage,
    open_tables,
)
from infra.store import ObjectInfo, open_store
from training_core.errors import ConfigurationError, StoppedByGate

MOST_OBJECTS = 12
MOST_BYTES = 512 * 2**20  # of objects that are read; one is read whatever its size
MOST_ROWS = 300_000
_MOST_CELLS = 20_000_000  # 160 MB as 64-bit values: a wide table gives fewer rows


@dataclass(frozen=True)
class Source:
    """Where the data is, and which of its objects are data.

    Attributes:
        uri: Folder (absolute) or s3://bucket/prefix.
        ending: Of the objects' names; other objects are left alone.
        objects: All that end so, by key.
        others: Names of objects that end otherwise.
    """

    uri: str
    ending: str
    objects: list[ObjectInfo]
    others: list[str]

    @property
    def size(self) -> int:
        """Bytes of all objects."""
        return sum(o.size for o in self.objects)


@dataclass(frozen=True)
class Sample:
    """Rows to decide by: the table `sample`, out of the view `everything`.

    Attributes:
        read: Keys of the objects that were read.
        read_rows: Rows of those objects, which is what `everything` holds.
        rows: Of `sample`.
        likely_rows: Of the whole source: those read, scaled by bytes.
        types: DuckDB type of each column.
        differences: Sentences about objects whose columns differ.
    """

    connection: duckdb.DuckDBPyConnection
    source: Source
    read: list[str]
    read_rows: int
    rows: int
    likely_rows: int
    types: dict[str, str]
    differences: list[str]


def find_source(data: str) -> Source:
    """List the data and choose the kind of object that most of it is.

    Raises:
        ConfigurationError: There is no such folder.
        StoppedByGate: It holds nothing that can be read.
    """
    if "://" not in data and not Path(data).expanduser().is_dir():
        raise ConfigurationError(
            f"there is no folder {data!r}",
            hint="DATA is a folder or s3://bucket/prefix, for example: evertrain init data "
            "--label COLUMN",
        )
    store = open_store(data if "://" in data else Path(data).expanduser())
    listed = [o for o in store.list() if not any(p.startswith(".") for p in o.key.split("/"))]
    by_ending = {e: [o for o in listed if _ending(o.key) == e] for e in SUFFIXES}
    ending = max(by_ending, key=lambda e: len(by_ending[e]))
    if not by_ending[ending]:
        there = ", ".join(o.key for o in listed[:3]) or "nothing"
        raise StoppedByGate(
            f"there is nothing to read below {store.uri}: it holds {there}",
            hint=f"the names of data end in one of {', '.join(SUFFIXES)}",
        )
    others = [o.key for o in listed if _ending(o.key) != ending]
    return Source(store.uri, ending, by_ending[ending], others)


@contextmanager
def open_sample(source: Source) -> Iterator[Sample]:
    """Fetch some objects and take rows of them, the same ones each time.

    An object is converted as the snapshot of a run does it, so types here are types there.

    Raises:
        StoppedByGate: An object cannot be read, or there is no row.
    """
    settings = DataSettings(source=source.uri, row_key=["not known yet"])  # as it will be written
    with TemporaryDirectory(prefix="evertrain-init-") as name:
        folder = Path(name)
        cache = Cache(folder / "objects")
        chosen = choose(source.objects)
        opened = open_source(source.uri)
        objects = [bring_unknown(opened, cache, info.key, settings) for info in chosen]
        scratch = folder / "spill"
        with open_tables(settings, readable=[cache.folder], scratch=scratch) as connection:
            with naming_damage(connection, objects):
                sample = _sampled(connection, source, chosen, objects)
            yield sample


def choose(objects: list[ObjectInfo]) -> list[ObjectInfo]:
    """The newest object by key, the oldest, and others evenly between, within `MOST_BYTES`."""
    count = min(len(objects), MOST_OBJECTS)
    last = len(objects) - 1
    places = [last, 0, *(round(i * last / max(1, count - 1)) for i in range(1, count - 1))]
    chosen: list[ObjectInfo] = []
    for place in dict.fromkeys(places):
        size = sum(o.size for o in chosen) + objects[place].size
        if not chosen or size <= MOST_BYTES:
            chosen.append(objects[place])
    return sorted(chosen, key=lambda o: o.key)


def _ending(key: str) -> str:
    return next((e for e in SUFFIXES if key.lower().endswith(e)), "")


def _sampled(
    connection: duckdb.DuckDBPyConnection,
    source: Source,
    chosen: list[ObjectInfo],
    objects: list[LocalObject],
) -> Sample:
    """Name the rows, count them, and keep those whose hash says so."""
    add_view(connection, "everything", objects)
    types = columns_of(connection, "everything")
    read_rows = sum(o.rows for o in objects)
    if not read_rows:
        raise StoppedByGate(
            f"there is no row in the {len(chosen)} objects read below {source.uri}",
            hint="init decides by a sample: bring data",
        )
    wanted = max(1_000, min(MOST_ROWS, _MOST_CELLS // len(types)))
    every = -(-read_rows // wanted)
    connection.execute(
        'CREATE TABLE sample AS SELECT * FROM everything AS "whole row" '
        f'WHERE hash("whole row") % {every} = 0'
    )
    size = sum(o.size for o in chosen)
    return Sample(
        connection=connection,
        source=source,
        read=[o.key for o in chosen],
        read_rows=read_rows,
        rows=_count(connection, "sample"),
        likely_rows=round(read_rows * source.size / max(1, size)),
        types=types,
        differences=_differences(objects),
    )


def _count(connection: duckdb.DuckDBPyConnection, name: str) -> int:
    found = connection.execute(f"SELECT count(*) FROM {name}").fetchone()
    assert found is not None
    return int(found[0])


def _differences(objects: list[LocalObject]) -> list[str]:
    """Say which object has other columns or types than most: a run stops there."""
    try:
        refuse_mixed_schemas(objects)
    except StoppedByGate as fault:
        return [fault.what]
    return []
