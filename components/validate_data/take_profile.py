"""Taking a profile: a small sample fixes where values are counted, then all rows stream by once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from components.common.labels import Label
from components.common.settings import ProjectSettings
from components.common.tables import NUMBER, OBJECT, columns_of
from components.validate_data.cells import cells_from
from components.validate_data.clusters import clusters_of
from components.validate_data.counting import (
    DistinctCounter,
    Labels,
    NameCounter,
    NumberCounter,
    Tally,
)
from components.validate_data.distances import cramers_v
from components.validate_data.drawn import Drawn
from components.validate_data.profile import (
    Cells,
    ColumnProfile,
    Counts,
    Kind,
    Profile,
    significant,
)
from components.validate_data.row_stream import group_of, kind_of, sample, stream, unnamed

_NAMED = 20  # values without a cell that are told
_QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass
class _Column:
    """A column while it is counted.

    Attributes:
        number: Its place in the stream.
        distinct: Different values, where the sample knows them.
        hashes: None: they are known, or not asked for.
    """

    name: str
    type: str
    number: int
    kind: Kind
    counter: NumberCounter | NameCounter
    distinct: int | None
    hashes: DistinctCounter | None

    def count(self, batch: pa.RecordBatch, labels: Labels) -> None:
        values = batch.column(f"v{self.number}")
        if isinstance(self.counter, NumberCounter):
            numbers = values.to_numpy(zero_copy_only=False)
            self.counter.add(numbers, labels)
            if self.hashes is not None:
                self.hashes.add_numbers(numbers)
            return
        self.counter.add(values, labels)
        if self.hashes is not None:
            found = batch.column(f"h{self.number}").to_numpy()
            if values.null_count:
                found = found[values.is_valid().to_numpy(zero_copy_only=False)]
            self.hashes.add_hashes(found)

    @property
    def needs_hash(self) -> bool:
        """Whether its different values are told apart by a hash that DuckDB makes."""
        return self.hashes is not None and isinstance(self.counter, NameCounter)


def take_profile(
    connection: duckdb.DuckDBPyConnection,
    view: str,
    *,
    settings: ProjectSettings,
    label: Label,
    edges: Profile | None = None,
) -> Profile:
    """Count the rows of a view: `take_profiles` for one profile."""
    return take_profiles(connection, view, settings=settings, label=label, edges=[edges])[0]


def take_profiles(
    connection: duckdb.DuckDBPyConnection,
    view: str,
    *,
    settings: ProjectSettings,
    label: Label,
    edges: Sequence[Profile | None],
    drawn: Drawn | None = None,
) -> list[Profile]:
    """Count the rows of a view, in several cells at once.

    The same rows give the same profile, in whatever order and number of files they come. Columns
    are counted on as many threads as DuckDB has, while it reads on.

    Args:
        connection: As `open_tables` gives it.
        view: With one row per row of the data.
        settings: Which columns are the key and the time.
        label: Of the task; of a binary one, above one half counts as 1.
        edges: For each profile wanted: count in the cells of this one, so that the two can be
            compared. A column that it lacks, or has as another kind, gets cells of its own. None:
            all columns do.
        drawn: From the rows of this view, if any were: saves reading them all for a sample.
    """
    clusters, rows = clusters_of(connection, view, settings.data)
    types = {n: t for n, t in columns_of(connection, view).items() if n not in (OBJECT, NUMBER)}
    known = [{} if one is None else _comparable(one, types) for one in edges]
    own = _own_cells(connection, view, types, known, rows, settings, drawn)
    wanted = [_columns(types, cells, own, clusters.count) for cells in known]
    counted = [column for columns in wanted for column in columns]
    grouped = Tally(Cells(coarse=[0]), clusters.count)
    threads = connection.execute("SELECT current_setting('threads')").fetchall()[0][0]
    source = stream(
        connection, view, types=types, hashed={c.name for c in counted if c.needs_hash},
        group=group_of(label, types), clusters=clusters,
    )  # fmt: skip
    with ThreadPoolExecutor(threads) as pool:
        for batch in source:
            days, truth = batch.column(0).to_numpy(), batch.column(1).to_numpy()
            labels = Labels.of(clusters.numbers(days), truth)
            grouped.add(np.zeros(len(days), np.uint8), labels.groups)
            list(pool.map(_counting(batch, labels), counted))
    by_cluster = grouped.by_cluster()[:, :, 0]
    filled = np.flatnonzero(by_cluster[:, :-1].any(axis=0))
    first_days, lengths = clusters.days()
    none, no, yes = by_cluster.sum(axis=1).tolist()
    if none + no + yes != rows:  # another query on the connection ends a stream without a word
        raise RuntimeError(f"{none + no + yes} of {rows} rows of {view} were read")
    return [
        Profile(
            rows=rows,
            label=label.shown[0],
            label_kind=label.kind,
            label_columns=list(label.shown),
            ordered=clusters.newest is not None,
            first_days=first_days[filled],
            lengths=lengths[filled],
            cluster_rows=by_cluster[:, filled],
            label_rows=(none, no, yes),
            columns={
                c.name: _finish(connection, view, c, filled, known_cells.get(c.name))
                for c in columns
            },
        )
        for columns, known_cells in zip(wanted, known, strict=True)
    ]


def _counting(batch: pa.RecordBatch, labels: Labels) -> Callable[[_Column], None]:
    return lambda column: column.count(batch, labels)


def _comparable(edges: Profile, types: dict[str, str]) -> dict[str, ColumnProfile]:
    """Columns of a profile in whose cells values of these types can be counted."""
    return {
        name: column
        for name, column in edges.columns.items()
        if name in types and kind_of(types[name]) == column.kind
    }


def _own_cells(
    connection: duckdb.DuckDBPyConnection,
    view: str,
    types: dict[str, str],
    known: list[dict[str, ColumnProfile]],
    rows: int,
    settings: ProjectSettings,
    drawn: Drawn | None,
) -> dict[str, tuple[Cells, int | None]]:
    """Cells, and different values where the sample knows them, of columns that need their own."""
    fresh = {n: t for n, t in types.items() if any(n not in cells for cells in known)}
    found = sample(
        connection, view, types=fresh, rows=rows, settings=settings, drawn=drawn
    )  # fmt: skip
    return {
        name: cells_from(values, kind_of(types[name]), whole=rows == len(values))
        for name, values in found.items()
    }


def _columns(
    types: dict[str, str],
    known: dict[str, ColumnProfile],
    own: dict[str, tuple[Cells, int | None]],
    clusters: int,
) -> list[_Column]:
    found = []
    for number, (name, type_) in enumerate(types.items()):
        kind = kind_of(type_)
        distinct, hashes, reach = None, None, None
        if name in known:
            cells = known[name].cells
            least, most = known[name].least, known[name].most
            reach = None if least is None or most is None else (least, most)
        else:
            cells, distinct = own[name]
            hashes = DistinctCounter() if distinct is None else None
        tally = Tally(cells, clusters)
        counter = (
            NumberCounter(cells, tally, reach)
            if kind in ("number", "time")
            else NameCounter(cells, tally)
        )
        found.append(_Column(name, type_, number, kind, counter, distinct, hashes))
    return found


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
    none, no, yes = counts[:, :, :-1].sum(axis=(1, 2)).tolist()
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
        # where the reference had values without a name, too, none can be known to be new
        if known is not None and totals[-2] and not known.totals[-2]:
            unseen = unnamed(
                connection, view, name=column.name, type_=column.type, names=cells.names,
                most=_NAMED,
            )  # fmt: skip
    distinct, own_value = _different(column, none + no + yes)
    return ColumnProfile(
        column=column.name, kind=column.kind, type=column.type, nulls=int(totals[-1]),
        known=(none, no, yes), distinct=distinct, own_value=own_value,
        low=low, high=high, least=least, most=most, mean=mean, std=std,
        label_correlation=None if correlation is None else significant(correlation),
        quantiles=quantiles, beyond=beyond, unseen=unseen, cells=cells, totals=totals,
        seen=_seen(counts[:, filled], cells), daily=cells.merged(counts[:, filled]),
    )  # fmt: skip


def _different(column: _Column, known: int) -> tuple[int | None, float | None]:
    """Different values, and how many of them there are a row."""
    if column.hashes is not None:
        return column.hashes.estimate, significant(column.hashes.own_value)
    if column.distinct is None:
        return None, None
    return column.distinct, significant(column.distinct / max(1, known))


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
