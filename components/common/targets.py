"""The label of rows in DuckDB, as the task reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa

from components.common.labels import Floats, Label
from components.common.tables import columns_of, quoted
from training_core.errors import StoppedByGate

if TYPE_CHECKING:
    from training_core.checks.lost_labels import LostLabel

TARGETS = "targets"
TARGET = '"evertrain target"'  # a name that no data has
_NAMED = 100  # values of the label that are named
_AT_ONCE = 100_000  # different labels that are in Python at a time
_TOLD, _LONG = 3, 60  # values in a sentence, characters of each
_NONE_OF = {
    "binary": "no yes or no",
    "multiclass": "no class of the task",
    "multilabel": "no yes or no",
    "regression": "no number",
    "sequence": "no sequence of a token or more",
}
_SEQUENCES_AT_ONCE = 2_000  # a target of 1,000 tokens takes 8 KB


def value_of(place: int) -> str:
    """The column of `TARGETS` that holds a value of the label's column of this place."""
    return f'"evertrain value {place}"'


def shown_of(place: int) -> str:
    """The column of `TARGETS` that holds what a profile shows of it."""
    return f'"evertrain shown {place}"'


def add_targets(connection: duckdb.DuckDBPyConnection, view: str, label: Label) -> None:
    """Make the table `TARGETS`: each different label, what is shown of it, and its `TARGET`.

    NULL is no label. The task sees each different value once, in a frame of the label's columns
    alone, however many rows there are: its target is a function of them (`training_core.task`).

    Raises:
        StoppedByGate: The view lacks a column of the label.
        ConfigurationError: The task's target is none of its kind.
    """
    _refuse_absent(connection, view, label)
    names = [quoted(name) for name in label.columns]
    places = range(len(names))
    held = "VARCHAR" if label.kind == "multiclass" else "DOUBLE"
    made = [f"{name} AS {value_of(i)}" for i, name in enumerate(names)]
    made += [f"CAST(NULL AS {held}) AS {shown_of(i)}" for i in places]
    connection.execute(
        f"CREATE OR REPLACE TABLE {TARGETS} AS SELECT {', '.join(made)}, "
        f"CAST(NULL AS DOUBLE) AS {TARGET} FROM {quoted(view)} LIMIT 0"
    )
    at_once = _SEQUENCES_AT_ONCE if label.kind == "sequence" else _AT_ONCE
    with connection.cursor() as reading:
        different = reading.execute(f"SELECT DISTINCT {', '.join(names)} FROM {quoted(view)}")
        for batch in different.to_arrow_reader(at_once):
            if not len(batch):
                continue
            values = pa.Table.from_batches([batch])
            numbers = label.numbers(values.to_pandas())
            columns = [*values.columns, *_shown(numbers, label), _number(numbers.sum(axis=1))]
            told = pa.Table.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])
            connection.register("batch", told)
            connection.execute(f"INSERT INTO {TARGETS} SELECT * FROM batch")
            connection.unregister("batch")


def _shown(numbers: Floats, label: Label) -> list[pa.Array]:
    if label.kind != "multiclass":
        return [_number(column) for column in numbers.T]
    names = [None if np.isnan(n) else label.name_of(n) for n in numbers[:, 0]]
    return [pa.array(names, pa.string())]


def _number(values: Floats) -> pa.Array:
    return pa.array(values, pa.float64(), from_pandas=True)  # NaN becomes NULL


def _refuse_absent(connection: duckdb.DuckDBPyConnection, view: str, label: Label) -> None:
    there = columns_of(connection, view)
    for name in label.columns:
        if name not in there:
            raise StoppedByGate(
                f"the data lacks the label column {name!r}",
                hint="correct the task's label, or ask where the column went",
            )


def _same(view: str, label: Label) -> str:
    return " AND ".join(
        f"{quoted(view)}.{quoted(name)} IS NOT DISTINCT FROM {value_of(i)}"
        for i, name in enumerate(label.columns)
    )


def labelled(view: str, label: Label, *, others_too: bool = False) -> str:
    """Return SQL for the rows of a view that have a label, or all, joined with their `TARGET`."""
    if others_too:
        return f"{quoted(view)} LEFT JOIN {TARGETS} ON {_same(view, label)}"
    return f"{quoted(view)} JOIN {TARGETS} ON {_same(view, label)} AND {TARGET} IS NOT NULL"


def lost_labels(connection: duckdb.DuckDBPyConnection, view: str, label: Label) -> list[LostLabel]:
    """Return the values of the label in `TARGETS` that have no target and are no nulls.

    The most frequent ones, as JSON has them: a text in each of a million rows is named once.
    """
    from training_core.checks.lost_labels import LostLabel  # it imports torch: a second and a half

    rows = connection.execute(f"SELECT count(*) FROM {quoted(view)}").fetchall()[0][0]
    lost = []
    for i, name in enumerate(label.columns):
        found = connection.execute(
            f"SELECT {value_of(i)}, count(*) FROM {quoted(view)} JOIN {TARGETS} "
            f"ON {_same(view, label)} WHERE {value_of(i)} IS NOT NULL AND {shown_of(i)} IS NULL "
            f"GROUP BY 1 ORDER BY 2 DESC LIMIT {_NAMED}"
        ).fetchall()
        for value, count in found:
            plain = value if isinstance(value, str | bool | int | float) else str(value)
            if plain == plain:  # NaN is no value
                lost.append(LostLabel(name, plain, count / rows))
    return lost


def lost_words(lost: Sequence[LostLabel], label: Label) -> str:
    """Say which values of the label are none; empty: there are no such values."""
    told = [
        f"{_cut(each.value)} in {each.column!r} ({each.share:.2%} of the rows)" for each in lost
    ]
    if not told:
        return ""
    more = f" and {len(told) - _TOLD} other values" if len(told) > _TOLD else ""
    is_none = f"{'is' if len(told) == 1 else 'are'} {_NONE_OF[label.kind]}"
    return f"{', '.join(told[:_TOLD])}{more} {is_none}"


def _cut(value: object) -> str:
    said = repr(value)
    return said if len(said) <= _LONG else f"{said[:_LONG]}…"


def add_label_views(connection: duckdb.DuckDBPyConnection, label: Label) -> str:
    """Make the views `judged` and `located_judged`: `kept` with the label as a profile shows it.

    A label may be a text, or minutes of which the task asks whether they are more than fifteen.

    Returns:
        `judged`, or `kept` where the data lacks a column of the label.
    """
    there = columns_of(connection, "kept")
    if any(name not in there for name in label.columns):
        return "kept"
    add_targets(connection, "kept", label)
    plain = [_as_it_stands(name, label) for name in label.columns]
    changed = label.kind == "sequence" or any(
        connection.execute(
            f"SELECT count(*) FROM {TARGETS} "
            f"WHERE {shown_of(i)} IS DISTINCT FROM {_as_it_stands(value_of(i), label, raw=True)}"
        ).fetchall()[0][0]
        for i in range(len(plain))
    )
    for prefix in ("", "located_"):
        rows = f"{prefix}kept"
        source, values = (
            labelled(rows, label, others_too=True),
            [shown_of(i) for i in range(len(plain))],
        )
        if not changed:  # a join looks up every row, in every scan
            source, values = rows, plain
        told = [f"{v} AS {quoted(n)}" for v, n in zip(values, label.shown, strict=True)]
        more = f", {told[0]}" if label.kind == "sequence" else f" REPLACE ({', '.join(told)})"
        connection.execute(
            f"CREATE OR REPLACE VIEW {prefix}judged AS SELECT {rows}.*{more} FROM {source}"
        )
    return "judged"


def _as_it_stands(name: str, label: Label, *, raw: bool = False) -> str:
    """SQL: what is shown of a value that the task takes as it is."""
    value = name if raw else quoted(name)
    if label.kind == "multiclass":
        return f"CAST({value} AS VARCHAR)"
    number = f"TRY_CAST({value} AS DOUBLE)"
    if raw and label.kind == "regression":  # a target of single precision is the same number
        return f"CAST(TRY_CAST({number} AS FLOAT) AS DOUBLE)"
    return number
