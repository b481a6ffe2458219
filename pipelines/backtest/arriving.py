"""The data as it arrived: the rows of each period in a file, there once its time has come.

A row arrives when its time column says so. The data are cut once, by that column alone, so that
each period's rows are one object and a snapshot reads what is new; with `data.window`, which counts
days, a day's rows are.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from components.common.cache import Cache
from components.common.local import fetch_objects, refuse_mixed_schemas
from components.common.sources import open_source
from components.common.tables import add_view, columns_of, open_tables
from components.common.values import utc
from components.snapshot_data.taking import take_snapshot
from pipelines.backtest.schedule import Period, step
from pipelines.backtest.settings import Place
from training_core.errors import ConfigurationError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def cut_rows(place: Place, schedule: list[Period], every: str) -> dict[str, int]:
    """Write a file for each span of time that has rows; return the rows of each, by its first day.

    What is there already is kept, and has to be what the source says still.

    Raises:
        ConfigurationError: No row is older than the first date, or the past has changed.
    """
    settings = place.real.settings.data
    source, cache = open_source(place.real.data_source), Cache(place.home / "cache")
    manifest = take_snapshot(source, settings=settings, before=None, cache=cache).manifest
    objects = fetch_objects(manifest, settings, cache)
    refuse_mixed_schemas(objects)
    rows, column = place.folder / "rows", settings.time_column
    assert column is not None
    rows.mkdir(parents=True, exist_ok=True)
    with open_tables(
        settings, readable=[cache.folder], scratch=place.home / "scratch"
    ) as connection:
        add_view(connection, "rows", objects)
        time = f"epoch_us({utc(column, columns_of(connection, 'rows'))})"
        oldest = _oldest(connection, time)
        first = schedule[0].start
        if oldest is None or oldest >= first:
            raise ConfigurationError(
                f"no row is older than --from {first:%Y-%m-%d}"
                + (f": the first is of {oldest:%Y-%m-%d %H:%M} UTC" if oldest else ""),
                hint="a first model needs some past: begin later",
            )
        edges = _edges(schedule, every, oldest, daily=bool(settings.window))
        found = {}
        for start, end in pairwise(edges):
            count = _write(connection, rows, place.data, time, start, end, settings.row_key)
            if count:
                found[f"{start:%Y-%m-%d}"] = count
    return found


def arrive(place: Place, before: datetime) -> int:
    """Let the files of all that is older than a date be in the data folder; return how many are."""
    place.data.mkdir(parents=True, exist_ok=True)
    arrived = [f for f in files(place) if f.stem < f"{before:%Y-%m-%d}"]
    for file in arrived:
        there = place.data / file.name
        if not there.exists():
            os.link(file, there)  # the same file: nothing about it looks new to a later snapshot
    return len(arrived)


def files(place: Place) -> list[Path]:
    """The files of rows, oldest first."""
    return sorted((place.folder / "rows").glob("*.parquet"))


def _edges(schedule: list[Period], every: str, oldest: datetime, *, daily: bool) -> list[datetime]:
    """Where the rows are cut: at the dates, as regularly before them, or at each midnight."""
    first, last = schedule[0].start, step(schedule[0].start, every, len(schedule))
    if daily:
        start = oldest.replace(hour=0, minute=0, second=0, microsecond=0)
        return [start + timedelta(days=day) for day in range((last - start).days + 1)]
    count = 0
    while step(first, every, count) > oldest:
        count -= 1
    return [*(step(first, every, n) for n in range(count, 0)), *(p.start for p in schedule), last]


def _oldest(connection: duckdb.DuckDBPyConnection, time: str) -> datetime | None:
    answer = connection.execute(f"SELECT min({time}) FROM rows").fetchall()[0][0]
    return None if answer is None else _EPOCH + timedelta(microseconds=answer)


def _write(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    arrived: Path,
    time: str,
    start: datetime,
    end: datetime,
    row_key: list[str],
) -> int:
    """Write the rows of a span of time, if there are any; return how many.

    What a run has seen stays; of a period that no run has seen there may be more rows now.
    """
    low, high = ((moment - _EPOCH) // timedelta(microseconds=1) for moment in (start, end))
    where = f"FROM rows WHERE {time} >= {low} AND {time} < {high}"
    count = int(connection.execute(f"SELECT count(*) {where}").fetchall()[0][0])
    file = folder / f"{start:%Y-%m-%d}.parquet"
    if file.exists():
        before = pq.read_metadata(file).num_rows
        if before == count:
            return count
        if (arrived / file.name).exists():
            raise ConfigurationError(
                f"the rows of {start:%Y-%m-%d} to {end:%Y-%m-%d} have changed since this backtest "
                f"began: {before} then, {count} now",
                hint=f"remove {folder.parent} to begin again",
            )
    if count:
        order = ", ".join(f'"{name}"' for name in row_key)
        table = connection.execute(f"SELECT * {where} ORDER BY {time}, {order}").to_arrow_table()
        unfinished = file.with_suffix(".unfinished")
        pq.write_table(table, unfinished, compression="zstd")
        unfinished.replace(file)
    return count
