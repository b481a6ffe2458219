"""Taking a profile: a small sample fixes where values are counted, then all rows stream by once."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from components.common.settings import ProjectSettings
from components.common.tables import NUMBER, OBJECT, columns_of, quoted
from components.validate_data.cells import cells_from
from components.validate_data.clusters import Clusters, clusters_of, hash_of
from components.validate_data.counting import (
    DistinctCounter,
    Labels,
    NameCounter,
    NumberCounter,
    Tally,
)
from components.validate_data.distances import cramers_v
from components.validate_data.profile import (
    Cells,
    ColumnProfile,
    Counts,
    Kind,
    Profile,
    significant,
)

SAMPLE = 100_000  # rows that fix the cells: a quantile is off by 0.2 % of the rows at most
_BATCH = 1 << 17
_NAMED = 20  # values without a cell that are told
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL")
_QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass
class _Column:
    """A column while it is counted."""

    name: str
    type: str
    kind: Kind
    counter: NumberCounter | NameCounter
    distinct: int | None
    hashes: DistinctCounter | None  # None: `distinct` is known, or not asked for


def kind_of(type_: str) -> Kind:
    """How a column of a DuckDB type is counted; what is no number, time or boolean is text."""
    if type_ == "BOOLEAN":
        return "boolean"
    if type_.startswith(("TIMESTAMP", "DATE")):
        return "time"
    return "number" if type_.lstrip("U").split("(")[0] in _NUMBERS else "category"


def take_profile(
    connection: duckdb.DuckDBPyConnection,
    view: str,
    *,
    settings: ProjectSettings,
    label: str,
    edges: Profile | None = None,
) -> Profile:
    """Count the rows of a view.

    The same rows give the same profile, in whatever order and number of files they come.

    Args:
        connection: As `open_tables` gives it.
        view: With one row per row of the data.
        settings: Which columns are the key and the time.
        label: The label's column; above one half counts as 1.
        edges: Count in the cells of this profile, so that the two can be compared. A column that
            it lacks, or has as another kind, gets cells of its own.
    """
    clusters, rows = clusters_of(connection, view, settings.data)
    types = {n: t for n, t in columns_of(connection, view).items() if n not in (OBJECT, NUMBER)}
    known = {} if edges is None else edges.columns
    columns = _columns(connection, view, types, known, clusters, rows, settings)
    grouped = Tally(Cells(coarse=[0]), clusters.count)
    source = _stream(connection, view, columns, label if label in types else None, clusters)
    for batch in source:
        days, truth = batch.column(0).to_numpy(), batch.column(1).to_numpy()
        labels = Labels.of(clusters.numbers(days), truth)
        grouped.add(np.zeros(len(days), np.uint8), labels.groups)
        for number, column in enumerate(columns):
            _count(column, batch, number, labels)
    filled = np.flatnonzero(grouped.by_cluster()[:, :-1].any(axis=(0, 2)))
    first_days, lengths = clusters.days()
    return Profile(
        rows=rows,
        label=label,
        ordered=clusters.newest is not None,
        first_days=first_days[filled],
        lengths=lengths[filled],
        cluster_rows=grouped.by_cluster()[:, filled, 0],
        undated=int(grouped.by_cluster()[:, -1].sum()),
        columns={
            c.name: _finish(connection, view, c, filled, known.get(c.name)) for c in columns
        },
    )  # fmt: skip


def _columns(
    connection: duckdb.DuckDBPyConnection,
    view: str,
    types: dict[str, str],
    known: dict[str, ColumnProfile],
    clusters: Clusters,
    rows: int,
    settings: ProjectSettings,
) -> list[_Column]:
    fresh = [n for n, t in types.items() if n not in known or known[n].kind != kind_of(t)]
    sample = _sample(connection, view, {n: types[n] for n in fresh}, rows, settings)
    found = []
    for name, type_ in types.items():
        kind = kind_of(type_)
        distinct, hashes, reach = None, None, None
        if name in sample:
            cells, distinct = cells_from(sample[name], kind, whole=rows == len(sample[name]))
            hashes = DistinctCounter() if distinct is None else None
        else:
            cells = known[name].cells
            least, most = known[name].least, known[name].most
            reach = None if least is None or most is None else (least, most)
        tally = Tally(cells, clusters.count)
        counter = (
            NumberCounter(cells, tally, reach)
            if kind in ("number", "time")
            else NameCounter(cells, tally)
        )
        found.append(_Column(name, type_, kind, counter, distinct, hashes))
    return found


def _sample(
    connection: duckdb.DuckDBPyConnection,
    view: str,
    types: dict[str, str],
    rows: int,
    settings: ProjectSettings,
) -> dict[str, pa.Array]:
    """Rows whose key has a certain hash; where a key says too little, whole rows are hashed."""
    if not types:
        return {}
    wanted = ", ".join(f"{_value(n, t)} AS {quoted(n)}" for n, t in types.items())
    share = max(1, rows // SAMPLE)
    whole_row = f"hash(row({', '.join(quoted(n) for n in types)}))"
    for hashed in (hash_of(settings.data), whole_row):
        query = f"SELECT {wanted} FROM {quoted(view)} WHERE {hashed} % {share} = 0"
        table = connection.execute(query).to_arrow_table()
        if len(table) >= 0.5 * min(rows, SAMPLE):
            break
    return {name: table[name].combine_chunks() for name in types}


def _stream(
    connection: duckdb.DuckDBPyConnection,
    view: str,
    columns: list[_Column],
    label: str | None,
    clusters: Clusters,
) -> pa.RecordBatchReader:
    """Cluster, label (0 none, 1 no, 2 yes), then each column's value and, where asked for, hash."""
    truth = f"CAST({quoted(label)} AS DOUBLE)" if label else "NULL::DOUBLE"
    wanted = [
        f"{clusters.expression} AS day",
        f"(CASE WHEN {truth} IS NULL OR isnan({truth}) THEN 0 WHEN {truth} > 0.5 THEN 2 ELSE 1 END)"
        "::INTEGER AS label",
    ]
    for number, column in enumerate(columns):
        wanted.append(f"{_value(column.name, column.type)} AS v{number}")
        if column.hashes is not None:
            wanted.append(f"hash({quoted(column.name)}) AS h{number}")
    query = f"SELECT {', '.join(wanted)} FROM {quoted(view)}"
    return connection.execute(query).to_arrow_reader(_BATCH)


def _value(name: str, type_: str) -> str:
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


def _count(column: _Column, batch: pa.RecordBatch, number: int, labels: Labels) -> None:
    values = batch.column(f"v{number}")
    if isinstance(column.counter, NumberCounter):
        column.counter.add(values.to_numpy(zero_copy_only=False), labels)
    else:
        column.counter.add(values, labels)
    if column.hashes is not None:
        found = batch.column(f"h{number}").to_numpy()
        if values.null_count:
            found = found[values.is_valid().to_numpy(zero_copy_only=False)]
        column.hashes.add(found)


def _finish(
    connection: duckdb.DuckDBPyConnection,
    view: str,
    column: _Column,
    filled: Counts,
    known: ColumnProfile | None,
) -> ColumnProfile:
    counter, cells = column.counter, column.counter.cells
    counts = counter.tally.by_cluster()
    totals = counts.sum(axis=(0, 1))
    low = high = ""
    least = most = mean = std = None
    quantiles: list[float] = []
    unseen: dict[str, int] = {}
    beyond = (0, 0)
    if isinstance(counter, NumberCounter):
        mean, std, correlation = (
            None if m is None else significant(m) for m in counter.moments()
        )  # fmt: skip
        beyond = (counter.below, counter.above)
        if counter.least <= counter.most:
            least, most = counter.least, counter.most
            quantiles = _quantiles(cells, totals[:-1], least, most)
            low, high = (_words(v, column.kind) for v in (least, most))
    else:
        correlation = cramers_v(counts[1:, :, :-1].sum(axis=1))
        named = [n for n, rows in zip(cells.names, totals, strict=False) if rows]
        if named:
            low, high = min(named), max(named)
        if known is not None and known.cells is cells and totals[-2]:
            unseen = _unnamed(connection, view, column, cells)
    distinct = column.hashes.estimate if column.hashes else column.distinct
    return ColumnProfile(
        column=column.name, kind=column.kind, type=column.type, nulls=int(totals[-1]),
        distinct=distinct, low=low, high=high, least=least, most=most, mean=mean, std=std,
        label_correlation=None if correlation is None else significant(correlation),
        quantiles=quantiles, beyond=beyond, unseen=unseen, cells=cells, totals=totals,
        seen=_seen(counts[:, filled], cells), daily=cells.merged(counts[:, filled]),
    )  # fmt: skip


def _seen(counts: Counts, cells: Cells) -> Counts:
    """First and last cluster of each name; 0 and -1 where none has it."""
    there = counts[:, :, : len(cells.names)].sum(axis=0) > 0
    if not there.size:
        return np.array([[0], [-1]]).repeat(len(cells.names), axis=1)
    last = len(there) - 1 - there[::-1].argmax(axis=0)
    return np.array([there.argmax(axis=0), np.where(there.any(axis=0), last, -1)], np.int64)


def _quantiles(cells: Cells, totals: Counts, least: float, most: float) -> list[float]:
    """Where the cell begins that a quantile is in: a value that fills a cell is given exactly."""
    upto = np.cumsum(totals) / totals.sum()
    begins = np.clip(np.concatenate([[least], cells.edges]), least, most)
    return [significant(float(q), 6) for q in begins[np.searchsorted(upto, _QUANTILES)]]


def _words(value: float, kind: Kind) -> str:
    if kind == "time":
        return f"{np.datetime64(round(value * 86400e6), 'us').astype('datetime64[s]')}Z"
    return f"{value:.10g}"


def _unnamed(
    connection: duckdb.DuckDBPyConnection, view: str, column: _Column, cells: Cells
) -> dict[str, int]:
    """The most frequent values that have no cell, with their rows."""
    value = _value(column.name, column.type)
    found = connection.execute(
        f"SELECT {value} AS value, count(*) AS rows FROM {quoted(view)} WHERE value IS NOT NULL "
        f"AND NOT list_contains($1, value) GROUP BY value ORDER BY rows DESC, value LIMIT {_NAMED}",
        [cells.names],
    ).fetchall()
    return {str(value): int(rows) for value, rows in found}
