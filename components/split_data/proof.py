"""Proof that the parts are apart: queries over the parts as they were written, and their answers.

Whoever doubts one runs its query again: `train`, `validation` and `holdout` are the three Parquet
files of the splits.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import duckdb

from components.common.data_figures import Part, Proof
from components.common.hashing import alike
from components.common.labels import Label
from components.common.rows import PARTS
from components.common.settings import ProjectSettings
from components.common.tables import columns_of, quoted
from components.common.targets import TARGET, TARGETS, value_of
from components.common.values import utc
from training_core.errors import StoppedByGate

PAIRS = (("train", "validation"), ("train", "holdout"), ("validation", "holdout"))
# Of a class's share, before its rows are no longer divided by chance: 1 run in 300,000 by luck,
# twelve comparisons a run.
_STANDARD_ERRORS = 5.0


def prove_apart(
    connection: duckdb.DuckDBPyConnection,
    *,
    settings: ProjectSettings,
    parts: dict[str, Part],
    label: Label,
) -> list[Proof]:
    """Prove that the parts share no row, and what else their rule promises.

    By time: that each part ends before the next begins; by group: that they share no group;
    stratified: that each class has its share of each part. How many rows of a later part have a
    near-duplicate in an earlier one is told and stops nothing.

    Args:
        connection: With the views `train`, `validation` and `holdout`, and the table `targets`.
        settings: Of the project.
        parts: How many rows each has.
        label: Of the task.

    Raises:
        StoppedByGate: Two parts overlap, are not in order, or a class is out of its share.
    """
    split, key = settings.split, settings.data.row_key
    proof = [_no_shared(connection, pair, key, "row") for pair in PAIRS]
    if split.by == "group":
        proof += [_no_shared(connection, pair, split.group, "group") for pair in PAIRS]
    if split.by == "time":
        assert settings.data.time_column is not None
        proof += [_in_order(connection, pair, settings.data.time_column) for pair in PAIRS]
    if split.by == "stratified":
        proof += [_class_shares(connection, part, settings, label) for part in PARTS[1:]]
    beside = {*key, *label.beside, settings.data.time_column}
    but_for = "key and time" if label.is_input else "key, time and label"
    return [
        *proof,
        _near_duplicates(connection, "train", ("validation", "holdout"), beside, parts, but_for),
        _near_duplicates(connection, "validation", ("holdout",), beside, parts, but_for),
    ]


def _no_shared(
    connection: duckdb.DuckDBPyConnection, pair: tuple[str, str], names: Sequence[str], what: str
) -> Proof:
    """No row, or no group, is in both parts."""
    earlier, later = pair
    same = " AND ".join(
        f"{earlier}.{quoted(n)} IS NOT DISTINCT FROM {later}.{quoted(n)}" for n in names
    )
    shared = f"FROM {later} WHERE EXISTS (SELECT 1 FROM {earlier} WHERE {same})"
    query = f"SELECT count(*) {shared}"
    count = _one(connection, query)[0]
    if count:
        columns = ", ".join(map(quoted, names))
        first = _one(connection, f"SELECT {columns} {shared} ORDER BY {columns} LIMIT 1")
        named = ", ".join(f"{name} {value}" for name, value in zip(names, first, strict=True))
        raise StoppedByGate(
            f"{count} rows are in {earlier} and in {later}, the first with {named}"
            if what == "row"
            else f"{count} rows of {later} are of groups that are in {earlier}, the first with "
            f"{named}",
            hint=f"is {list(names)} (data.row_key) really unique? are rows there twice?"
            if what == "row"
            else "a group was divided: this is a bug in split_data",
        )
    return Proof(
        claim=f"no {what} of {earlier} is in {later} (by {', '.join(names)})",
        query=query,
        answer=f"{count} shared",
    )


def _in_order(
    connection: duckdb.DuckDBPyConnection, pair: tuple[str, str], time_column: str
) -> Proof:
    """The earlier part ends before the later one begins."""
    earlier, later = pair
    time = utc(time_column, columns_of(connection, earlier))
    query = (
        f"SELECT e.last < l.first, strftime(e.last, '%Y-%m-%d %H:%M:%S'), "
        f"strftime(l.first, '%Y-%m-%d %H:%M:%S') FROM (SELECT max({time}) AS last FROM {earlier}) "
        f"AS e, (SELECT min({time}) AS first FROM {later}) AS l"
    )
    apart, last, first = _one(connection, query)
    if not apart:
        raise StoppedByGate(
            f"{earlier} ends at {last} UTC, after {later} begins at {first} UTC",
            hint="the parts were mixed up: this is a bug in split_data",
        )
    return Proof(
        claim=f"{earlier} ends before {later} begins ({last[:-3]} UTC)",
        query=query,
        answer=f"{last} UTC, then {first} UTC",
    )


def _class_shares(
    connection: duckdb.DuckDBPyConnection, part: str, settings: ProjectSettings, label: Label
) -> Proof:
    """Each class has its share of the part, as far as chance allows."""
    asked = settings.split.holdout if part == "holdout" else settings.split.validation
    everything = " UNION ALL ".join(
        f"SELECT {quoted(label.columns[0])} AS value, '{name}' AS part FROM {name}"
        for name in PARTS
    )
    query = (
        f"SELECT {TARGET}, count(*) FILTER (part = '{part}'), count(*) FROM ({everything}) AS rows "
        f"JOIN {TARGETS} ON rows.value IS NOT DISTINCT FROM {value_of(0)} GROUP BY 1 ORDER BY 1"
    )
    shares = []
    for target, inside, rows in connection.execute(query).fetchall():
        share = inside / rows
        if abs(share - asked) > _STANDARD_ERRORS * sqrt(asked * (1 - asked) / rows):
            raise StoppedByGate(
                f"{part} has {share:.1%} of the {rows} rows of class {label.name_of(target)}, not "
                f"{asked:.1%}: further off than chance explains",
                hint=f"{settings.data.row_key} (data.row_key) puts many rows at one place: name "
                "columns that tell rows apart, or use split.by: group",
            )
        shares.append(f"{share:.2%} of class {label.name_of(target)}")
    return Proof(
        claim=f"{part} has {asked:.0%} of each class, but for chance",
        query=query,
        answer=", ".join(shares),
    )


def _near_duplicates(
    connection: duckdb.DuckDBPyConnection,
    earlier: str,
    later: Sequence[str],
    beside: set[str | None],
    parts: dict[str, Part],
    but_for: str,
) -> Proof:
    """How many rows of later parts equal one of the earlier but for key, time and label."""
    columns = columns_of(connection, earlier)
    content = [name for name in columns if name not in beside]
    names = " and of ".join(later)
    claim = f"rows of {names} that a row of {earlier} equals but for {but_for}"
    if not content:
        return Proof(claim=claim, query="", answer="there are no other columns")
    hashed = alike(content, columns)
    rows = " UNION ALL ".join(f"SELECT '{n}' AS part, {hashed} AS alike FROM {n}" for n in later)
    counts = ", ".join(f"count(*) FILTER (part = '{name}')" for name in later)
    query = f"SELECT {counts} FROM ({rows}) WHERE alike IN (SELECT {hashed} FROM {earlier})"
    shares = [
        f"{count} ({count / max(1, parts[name].rows):.2%})"
        for name, count in zip(later, _one(connection, query), strict=True)
    ]
    return Proof(claim=claim, query=query, answer=" and ".join(shares))


def _one(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    answer = connection.execute(query).fetchone()
    assert answer is not None
    return answer
