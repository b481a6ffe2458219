"""Which part a row belongs to.

A side that must never change is a function of the row alone: think of a snapshot of that one row.
So no rule but the one by time looks at other rows, and shares hold up to the chance of a hash:
of N rows a share p is met within about √(p(1−p)/N).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import duckdb

from components.common.data_figures import Part
from components.common.data_settings import SplitSettings
from components.common.hashing import below, place
from components.common.labels import Label
from components.common.layout import digest_of
from components.common.rows import PARTS
from components.common.settings import ProjectSettings
from components.common.tables import columns_of, quoted, text
from components.common.targets import (
    TARGET,
    add_targets,
    labelled,
    lost_labels,
    lost_words,
    shown_of,
)
from components.common.values import utc
from components.split_data.part_labels import labels_of, refuse_missing
from training_core.errors import StoppedByGate

if TYPE_CHECKING:
    from training_core.checks.lost_labels import LostLabel

SIDED = "sided"
SIDE = '"evertrain side"'  # a name that no data has
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Division:
    """How the rows were divided.

    Attributes:
        parts: What each part holds; its times are empty where the data has no time column.
        unlabelled: Rows that are in no part.
        lost: Values of the label that are there, and are none.
        rare: In words, which rare classes a part lacks.
    """

    parts: dict[str, Part]
    unlabelled: int
    lost: list[LostLabel]
    rare: list[str]


def divide(
    connection: duckdb.DuckDBPyConnection,
    *,
    settings: ProjectSettings,
    label: Label,
    kept: str = "kept",
) -> Division:
    """Make the view `sided`: the labelled rows of `located_kept`, each with its `SIDE`.

    By time: the newest days (UTC) are the holdout, the days before them validation. By hash of
    the row's key, of its group's columns, or (stratified) of its key with the same limits within
    each class: a row's side follows from those values alone, so it stays there when rows are
    added. A null in them is a value like any other: rows of no known group stay together.

    Raises:
        StoppedByGate: Nothing is labelled, a time cannot be read, a column is missing, a part is
            empty or lacks a class that it needs (`refuse_missing`).
    """
    add_targets(connection, kept, label)
    rows = _count(connection, f"SELECT count(*) FROM {quoted(kept)}")
    known = _count(connection, f"SELECT count(*) FROM {labelled(kept, label)}")
    lost = lost_labels(connection, kept, label)
    if not known:
        said = lost_words(lost, label)
        raise StoppedByGate(
            f"none of the {rows} rows has a label in {', '.join(map(repr, label.columns))}"
            + (f": {said}" if said else ""),
            hint=f"let {label.owner}.target read these values, or correct the column"
            if said
            else "has the feed that brings the labels stopped?",
        )
    columns = columns_of(connection, kept)
    source = labelled(f"located_{kept}", label)
    side = side_of(connection, source, settings=settings, columns=columns)
    shown = ", ".join(shown_of(i) for i in range(len(label.columns)))
    connection.execute(
        f"CREATE VIEW {SIDED} AS SELECT {quoted('located_' + kept)}.*, {side} AS {SIDE}, "
        f"{TARGET}, {shown} FROM {source}"
    )
    parts = _described(connection, settings, columns)
    for name in PARTS:
        if name not in parts:
            raise StoppedByGate(
                f"the {name} part is empty: {known} labelled rows, {words(settings.split)}",
                hint="bring more data, or make the other parts smaller (split.holdout, "
                "split.validation)",
            )
    found = {n: labels_of(connection, SIDED, n, side=SIDE, label=label) for n in PARTS}
    rare = refuse_missing(found, label, settings.split, lost=lost)
    for name, part in parts.items():
        part.labels = found[name].figures
        part.positive_rate = found[name].figures["yes"] if label.kind == "binary" else None
    return Division(parts, rows - known, lost, rare)


def side_of(
    connection: duckdb.DuckDBPyConnection,
    source: str,
    *,
    settings: ProjectSettings,
    columns: dict[str, str],
) -> str:
    """Return SQL for the side of a row.

    Args:
        connection: Where the rows are.
        source: SQL for the labelled rows; there is one at least.
        settings: Of the project.
        columns: DuckDB types by name.

    Raises:
        StoppedByGate: A time cannot be read, or a column is missing.
    """
    split, time_column = settings.split, settings.data.time_column
    newest = _newest(connection, source, time_column, columns) if time_column else None
    if split.by == "time":
        assert time_column is not None
        assert newest is not None
        time = utc(time_column, columns)
        holdout_from = newest - timedelta(days=split.holdout - 1)
        validation_from = holdout_from - timedelta(days=split.validation)
        in_holdout, in_validation = (
            f"date_trunc('day', {time}) >= TIMESTAMPTZ {text(start.isoformat())}"
            for start in (holdout_from, validation_from)
        )
    else:
        names = split.group if split.by == "group" else settings.data.row_key
        if missing := [name for name in names if name not in columns]:
            key = "split.group" if split.by == "group" else "data.row_key"
            raise StoppedByGate(
                f"the data lacks the column {missing[0]!r}, by which it is divided",
                hint=f"correct {key}, or ask where the column went",
            )
        where = place(names, columns)
        in_holdout = below(where, split.holdout)
        in_validation = below(where, split.holdout + split.validation)
    return (
        f"CASE WHEN {in_holdout} THEN 'holdout' WHEN {in_validation} THEN 'validation' "
        "ELSE 'train' END"
    )


def _newest(
    connection: duckdb.DuckDBPyConnection, source: str, column: str, columns: dict[str, str]
) -> datetime:
    """The newest day of the labelled rows, at its midnight in UTC."""
    time = utc(column, columns)
    answer = connection.execute(
        f"SELECT count(*) - count(epoch_us({time})), epoch_us(date_trunc('day', max({time}))) "
        f"FROM {source}"
    ).fetchone()
    assert answer is not None
    unreadable, newest = answer
    if unreadable:
        raise StoppedByGate(
            f"{unreadable} rows have no readable time in {column!r}",
            hint="every row needs a time; put an expectation on the column to see which",
        )
    return _EPOCH + timedelta(microseconds=newest)


def _described(
    connection: duckdb.DuckDBPyConnection, settings: ProjectSettings, columns: dict[str, str]
) -> dict[str, Part]:
    """Each part that has rows."""
    column = settings.data.time_column
    time = f"epoch_us({utc(column, columns)})" if column else "CAST(NULL AS BIGINT)"
    answer = connection.execute(
        f"SELECT {SIDE}, count(*), min({time}), max({time}) FROM {SIDED} GROUP BY 1"
    ).fetchall()
    return {
        side: Part(rows=rows, start=_iso(start), end=_iso(end)) for side, rows, start, end in answer
    }


def _iso(microseconds: int | None) -> str:
    if microseconds is None:
        return ""
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat()


def _count(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    answer = connection.execute(query).fetchone()
    assert answer is not None
    return int(answer[0])


def seen_by_training(parts: dict[str, Part], settings: ProjectSettings) -> dict[str, str]:
    """Say what training and selection see, so that a later holdout can be known to be unseen.

    By time it ends with the newest row of validation; by any hash it follows from the rule.
    """
    if settings.split.by == "time":
        return {"by": "time", "until": parts["validation"].end}
    split = settings.split.model_dump(exclude={"rare_class"})  # it moves no row
    rule = {"split": split, "key": settings.data.row_key, "place": "md5"}
    return {"by": "hash", "rule": digest_of(rule)}


def words(split: SplitSettings) -> str:
    """The rule in words."""
    if split.by == "time":
        return (
            f"by time: the newest {split.holdout:g} days held out, the {split.validation:g} days "
            "before them for validation"
        )
    what = {
        "hash": "by hash of the row's key",
        "group": f"by group ({', '.join(split.group)})",
        "stratified": "by hash of the row's key within each class",
    }[split.by]
    return f"{what}: {split.holdout:.0%} held out, {split.validation:.0%} for validation"
