"""The label of rows in DuckDB, as the task reads it."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from components.common.tables import columns_of, quoted
from training_core.errors import StoppedByGate

Target = Callable[[pd.DataFrame], npt.NDArray[np.float32]]
TARGETS = "targets"
_AT_ONCE = 100_000  # different labels that are in Python at a time


def add_targets(
    connection: duckdb.DuckDBPyConnection, view: str, *, label: str, target: Target
) -> None:
    """Make the table `targets`: each `value` of the label column and its `target`, or NULL.

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
        f"SELECT {name} AS value, CAST(NULL AS DOUBLE) AS target FROM {quoted(view)} LIMIT 0"
    )
    with connection.cursor() as reading:
        different = reading.execute(f"SELECT DISTINCT {name} FROM {quoted(view)}")
        for batch in different.to_arrow_reader(_AT_ONCE):
            values = pa.Table.from_batches([batch])
            targets = np.asarray(target(values.to_pandas()), dtype=np.float64)
            connection.register("batch", values.append_column("target", pa.array(targets)))
            connection.execute(
                f"INSERT INTO {TARGETS} SELECT {name}, CASE WHEN isnan(batch.target) THEN NULL "
                "ELSE batch.target END FROM batch"
            )
            connection.unregister("batch")


def labelled(view: str, label: str) -> str:
    """Return SQL for the rows of a view that have a label, with their `targets.target`."""
    return (
        f"{quoted(view)} JOIN {TARGETS} ON {quoted(view)}.{quoted(label)} "
        f"IS NOT DISTINCT FROM {TARGETS}.value AND {TARGETS}.target IS NOT NULL"
    )
