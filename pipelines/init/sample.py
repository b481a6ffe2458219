"""A sample of the data: some objects of the source, and at most some hundred thousand rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from components.common.data_settings import DataSettings
from components.common.tables import columns_of, open_tables, text
from infra.store import ObjectInfo, open_store
from training_core.errors import ConfigurationError, StoppedByGate

MOST_OBJECTS = 12
MOST_BYTES = 512 * 2**20  # of objects that are read; one is read whatever its size
MOST_ROWS = 300_000
_MOST_CELLS = 20_000_000  # 160 MB as 64-bit values: a wide table gives fewer rows

# An object's ending, and how DuckDB reads such objects.
_PARQUET = ".parquet"
_CSV = "read_csv({file}, sample_size = -1, nullstr = {nulls})"
_JSON = "read_json({file}, format = 'newline_delimited', sample_size = -1)"
_READERS = {
    _PARQUET: "read_parquet({file})",
    **{f".csv{packed}": _CSV for packed in ("", ".gz")},
    **{f".{kind}{packed}": _JSON for kind in ("jsonl", "ndjson") for packed in ("", ".gz")},
}


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
    by_ending = {e: [o for o in listed if _ending(o.key) == e] for e in _READERS}
    ending = max(by_ending, key=lambda e: len(by_ending[e]))
    if not by_ending[ending]:
        there = ", ".join(o.key for o in listed[:3]) or "nothing"
        raise StoppedByGate(
            f"there is nothing to read below {store.uri}: it holds {there}",
            hint=f"the names of data end in one of {', '.join(_READERS)}",
        )
    others = [o.key for o in listed if _ending(o.key) != ending]
    return Source(store.uri, ending, by_ending[ending], others)


@contextmanager
def open_sample(source: Source, *, null_values: Sequence[str]) -> Iterator[Sample]:
    """Fetch some objects and take rows of them, the same ones each time.

    Raises:
        StoppedByGate: An object cannot be read, or there is no row.
    """
    settings = DataSettings(source=source.uri, row_key=["not known yet"])  # only memory counts
    with TemporaryDirectory(prefix="evertrain-init-") as name:
        folder = Path(name)
        with open_tables(settings, readable=[folder], scratch=folder / "spill") as connection:
            chosen = choose(source.objects)
            files = [
                _fetch(connection, source, o, folder / f"{i}", null_values)
                for i, o in enumerate(chosen)
            ]
            yield _sampled(connection, source, chosen, files)


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
    return next((e for e in _READERS if key.lower().endswith(e)), "")


def _fetch(
    connection: duckdb.DuckDBPyConnection,
    source: Source,
    info: ObjectInfo,
    target: Path,
    null_values: Sequence[str],
) -> Path:
    """An object as a Parquet file on this machine."""
    file = target.with_suffix(source.ending)
    open_store(source.uri).get_file(info.key, file)
    nulls = "[" + ", ".join(map(text, null_values)) + "]"
    reader = _READERS[source.ending].format(file=text(str(file)), nulls=nulls)
    parquet = target.with_suffix(_PARQUET)
    try:
        if parquet != file:
            copy = f"COPY (SELECT * FROM {reader}) TO {text(str(parquet))} (FORMAT parquet)"
            connection.execute(copy)
            file.unlink()
        connection.execute(f"SELECT count(*) FROM read_parquet({text(str(parquet))})")
    except duckdb.Error as error:
        words = str(error).splitlines()[0].replace(str(file), info.key)
        raise StoppedByGate(
            f"{info.key} in {source.uri} is no readable {source.ending} file ({info.size} bytes): "
            f"{words}",
            hint="it may be cut off or of another format; write it again or remove it",
        ) from error
    return parquet


def _sampled(
    connection: duckdb.DuckDBPyConnection,
    source: Source,
    chosen: list[ObjectInfo],
    files: list[Path],
) -> Sample:
    """Name the rows, count them, and keep those whose hash says so."""
    schemas = []
    for file in files:
        connection.execute(f"CREATE VIEW one AS SELECT * FROM read_parquet({text(str(file))})")
        schemas.append(columns_of(connection, "one"))
        connection.execute("DROP VIEW one")
    listed = ", ".join(text(str(file)) for file in files)
    connection.execute(
        f"CREATE VIEW everything AS SELECT * FROM read_parquet([{listed}], union_by_name = true)"
    )
    types = columns_of(connection, "everything")
    read_rows = _count(connection, "everything")
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
        differences=_differences(dict(zip([o.key for o in chosen], schemas, strict=True))),
    )


def _count(connection: duckdb.DuckDBPyConnection, name: str) -> int:
    found = connection.execute(f"SELECT count(*) FROM {name}").fetchone()
    assert found is not None
    return int(found[0])


def _differences(schemas: dict[str, dict[str, str]]) -> list[str]:
    """Say which columns not every object has alike: a run stops there."""
    held = Counter((c, t) for schema in schemas.values() for c, t in schema.items())
    said = []
    for column in dict.fromkeys(c for c, _ in held):
        kinds = [f"{t} in {n}" for (c, t), n in held.items() if c == column]
        without = [key for key, schema in schemas.items() if column not in schema]
        if len(kinds) > 1:
            said.append(f"{column} is {' and '.join(kinds)} objects")
        if without:
            said.append(f"{column} is missing in {len(without)} objects, for example {without[0]}")
    return said
