"""The rows of a view as batches of numbers and texts: read once, whoever counts them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pyarrow as pa

from components.common.labels import Label
from components.common.settings import ProjectSettings
from components.common.tables import quoted
from components.validate_data.clusters import Clusters
from components.validate_data.drawn import DRAWN, SAMPLE, Drawn, is_labelled, lowest, place_of
from components.validate_data.profile import Kind

_BATCH = 1 << 17
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL")


def kind_of(type_: str) -> Kind:
    """How a column of a DuckDB type is counted; what is no number, time or boolean is text."""
    if type_ == "BOOLEAN":
        return "boolean"
    if type_.startswith(("TIMESTAMP", "DATE")):
        return "time"
    return "number" if type_.lstrip("U").split("(")[0] in _NUMBERS else "category"


def value_of(name: str, type_: str) -> str:
    """SQL: numbers and times (in days) as DOUBLE, all else as text."""
    column = quoted(name)
    kind = kind_of(type_)
    if kind == "number":
        return column if type_ == "DOUBLE" else f"{column}::DOUBLE"
    if kind == "time":
        instant = (
            column if type_ in ("DATE", "TIMESTAMP WITH TIME ZONE") else f"{column}::TIMESTAMP"
        )
        return f"CASE WHEN isfinite({instant}) THEN epoch_us({instant}) / 86400000000.0 END"
    return column if type_ == "VARCHAR" else f"{column}::VARCHAR"


def stream(
    connection: duckdb.DuckDBPyConnection,
    view: str,
    *,
    types: Mapping[str, str],
    hashed: Set[str],
    group: str,
    clusters: Clusters,
) -> Iterator[pa.RecordBatch]:
    """Read all rows, the next batch while one is counted.

    Args:
        types: Of the columns to read.
        hashed: Those whose hash is wanted, too.
        group: SQL for each row's group of labels (`group_of`).

    Yields:
        Batches of `day` (int32, as `clusters.expression` has it), `label` (int32: its group),
        `v<i>` for each column in the order of `types`, and `h<i>` where it is hashed.
    """
    wanted = [f"{clusters.expression} AS day", f"({group})::INTEGER AS label"]
    for number, (name, type_) in enumerate(types.items()):
        wanted.append(f"{value_of(name, type_)} AS v{number}")
        if name in hashed:
            wanted.append(f"hash({quoted(name)}) AS h{number}")
    query = f"SELECT {', '.join(wanted)} FROM {quoted(view)}"
    reader = connection.execute(query).to_arrow_reader(_BATCH)
    with ThreadPoolExecutor(1) as reading:
        coming = reading.submit(next, reader, None)
        while (batch := coming.result()) is not None:
            coming = reading.submit(next, reader, None)
            yield batch


def group_of(label: Label, columns: Collection[str]) -> str:
    """SQL for the group of labels that a row is in: 0 none, 1 no, 2 yes.

    Of a label that is not binary, whatever it is, 1.
    """
    if any(name not in columns for name in label.shown):
        return "0"
    yes = f"{quoted(label.shown[0])} > 0.5" if label.kind == "binary" else "false"
    return f"CASE WHEN NOT ({is_labelled(label)}) THEN 0 WHEN {yes} THEN 2 ELSE 1 END"


def sample(
    connection: duckdb.DuckDBPyConnection,
    view: str,
    *,
    types: Mapping[str, str],
    rows: int,
    settings: ProjectSettings,
    drawn: Drawn | None = None,
) -> dict[str, pa.Array]:
    """Rows of the lowest places; where a key says too little, whole rows are hashed.

    Args:
        types: Of the columns to read.
        rows: Of the view.
        drawn: From the rows of this view, if any were.
    """
    if not types:
        return {}
    wanted = ", ".join(f"{value_of(n, t)} AS {quoted(n)}" for n, t in types.items())
    place = place_of(settings.data)
    source = quoted(view) if drawn is None else DRAWN
    table = connection.execute(
        f"SELECT {wanted} FROM {source} WHERE {lowest(SAMPLE, rows, place)}"
    ).to_arrow_table()
    if len(table) < 0.5 * min(rows, SAMPLE):
        whole_row = f"hash(row({', '.join(quoted(n) for n in types)}))"
        table = connection.execute(
            f"SELECT {wanted} FROM {quoted(view)} WHERE {lowest(SAMPLE, rows, whole_row)}"
        ).to_arrow_table()
    return {name: table[name].combine_chunks() for name in types}


def unnamed(
    connection: duckdb.DuckDBPyConnection, view: str, *, name: str, type_: str, names: list[str],
    most: int,
) -> dict[str, int]:  # fmt: skip
    """The most frequent values of a column that are none of `names`, with their rows."""
    value = value_of(name, type_)
    found = connection.execute(
        f"SELECT {value} AS value, count(*) AS rows FROM {quoted(view)} WHERE value IS NOT NULL "
        f"AND NOT list_contains($1, value) GROUP BY value ORDER BY rows DESC, value LIMIT {most}",
        [names],
    ).fetchall()
    return {str(value): int(rows) for value, rows in found}
