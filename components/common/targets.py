"""The label of rows in DuckDB, as the task reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from components.common.tables import columns_of, quoted
from training_core.errors import StoppedByGate

if TYPE_CHECKING:
    from training_core.checks.lost_labels import LostLabel

Target = Callable[[pd.DataFrame], npt.NDArray[np.float32]]
TARGETS = "targets"
VALUE, TARGET = '"evertrain value"', '"evertrain target"'  # names that no data has
_NAMED = 100  # values of the label that are named
_AT_ONCE = 100_000  # different labels that are in Python at a time


def add_targets(
    connection: duckdb.DuckDBPyConnection, view: str, *, label: str, target: Target
) -> None:
    """Make the table `TARGETS`: each `VALUE` of the label column and its `TARGET`, or NULL.

    The task sees each different value once, in a frame of the label column alone, however many
    rows there are: its target is a function of that column (`training_core.task`).

    Raises:
        StoppedByGate: The view has no such column.
    """
    if label not in columns_of(connection, view):
        raise StoppedByGate(
            f"the data lacks the label column {label!r}",
            hint="correct the task's label, or ask where the column went",
        )
    name = quoted(label)
    connection.execute(
        f"CREATE OR REPLACE TABLE {TARGETS} AS "
        f"SELECT {name} AS {VALUE}, CAST(NULL AS DOUBLE) AS {TARGET} FROM {quoted(view)} LIMIT 0"
    )
    with connection.cursor() as reading:
        different = reading.execute(f"SELECT DISTINCT {name} FROM {quoted(view)}")
        for batch in different.to_arrow_reader(_AT_ONCE):
            values = pa.Table.from_batches([batch])
            targets = np.asarray(target(values.to_pandas()), dtype=np.float64)
            both = pa.Table.from_arrays([*values.columns, pa.array(targets)], names=["v", "t"])
            connection.register("batch", both)
            connection.execute(
                f"INSERT INTO {TARGETS} SELECT v, CASE WHEN NOT isnan(t) THEN t END FROM batch"
            )
            connection.unregister("batch")


def labelled(view: str, label: str, *, others_too: bool = False) -> str:
    """Return SQL for the rows of a view that have a label, or all, joined with their `TARGET`."""
    same = f"{quoted(view)}.{quoted(label)} IS NOT DISTINCT FROM {VALUE}"
    if others_too:
        return f"{quoted(view)} LEFT JOIN {TARGETS} ON {same}"
    return f"{quoted(view)} JOIN {TARGETS} ON {same} AND {TARGET} IS NOT NULL"


def lost_labels(connection: duckdb.DuckDBPyConnection, view: str, label: str) -> list[LostLabel]:
    """Return the values of the label in `TARGETS` that have no target and are no nulls.

    The most frequent ones, as JSON has them: a text in each of a million rows is named once.
    """
    from training_core.checks.lost_labels import LostLabel  # it imports torch: a second and a half

    rows = connection.execute(f"SELECT count(*) FROM {quoted(view)}").fetchall()[0][0]
    found = connection.execute(
        f"SELECT {VALUE}, count(*) FROM {quoted(view)} JOIN {TARGETS} "
        f"ON {quoted(label)} = {VALUE} WHERE {TARGET} IS NULL GROUP BY 1 "
        f"ORDER BY 2 DESC LIMIT {_NAMED}"
    ).fetchall()
    plain = [
        (value if isinstance(value, str | bool | int | float) else str(value), count)
        for value, count in found
    ]
    return [LostLabel(label, value, count / rows) for value, count in plain if value == value]


def add_label_views(connection: duckdb.DuckDBPyConnection, *, label: str, target: Target) -> str:
    """Make the views `judged` and `located_judged`: `kept` with the label as the task reads it.

    A label may be a text, or minutes of which the task asks whether they are more than fifteen.

    Returns:
        `judged`, or `kept` where the data lacks the label.
    """
    if label not in columns_of(connection, "kept"):
        return "kept"
    add_targets(connection, "kept", label=label, target=target)
    changed = connection.execute(
        f"SELECT count(*) FROM {TARGETS} "
        f"WHERE {TARGET} IS DISTINCT FROM TRY_CAST({VALUE} AS DOUBLE)"
    ).fetchall()[0][0]
    for prefix in ("", "located_"):
        rows = f"{prefix}kept"
        source, value = labelled(rows, label, others_too=True), TARGET
        if not changed:  # a join looks up every row, in every scan
            source, value = rows, f"TRY_CAST({quoted(label)} AS DOUBLE)"
        connection.execute(
            f"CREATE OR REPLACE VIEW {prefix}judged AS "
            f"SELECT {rows}.* REPLACE ({value} AS {quoted(label)}) FROM {source}"
        )
    return "judged"
