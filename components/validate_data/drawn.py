"""Some rows drawn once, in one scan, for whoever does with a sample.

A row is drawn by the hash of its key: the same rows always, in whatever files and order they come.
"""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from components.common.data_settings import DataSettings
from components.common.labels import Label
from components.common.tables import columns_of, quoted
from training_core.errors import StoppedByGate

ROWS, DRAWN = "trusted", "drawn"
# Names that no data has.
POSITIVE, PLACE = '"evertrain positive"', '"evertrain place"'
LABELLED = '"evertrain labelled"'
SAMPLE = 100_000  # rows: a quantile of them is off by 0.2 % of the rows at most
A_CLASS = 100_000  # at an AUC of 0.95 they leave a standard error of 0.0007


@dataclass(frozen=True)
class Drawn:
    """What was drawn, and how many rows there are to draw from.

    The view `ROWS` has the data's columns, `LABELLED` (whether there is a label), `POSITIVE`
    (whether it is yes; NULL: there is none, or it is of another kind than binary) and `PLACE` (the
    hash of the row's key, 0 to 2^64). The table `DRAWN` has those of its rows that have the lowest
    places: about `SAMPLE` of all, and about `A_CLASS` of each of two classes, or all where there
    are fewer; of a label that is not binary about `A_CLASS` of the labelled ones.

    Attributes:
        view: The rows that were drawn from.
        rows: Number of them.
        labelled: Of those, with a label.
        positives: With a label that is yes.
        negatives: With one that is no.
    """

    view: str
    rows: int
    labelled: int
    positives: int
    negatives: int

    @property
    def trusted(self) -> str:
        """SQL: whether a row is in the sample that checks of trust look at."""
        if not self.positives and not self.negatives:
            return f"{LABELLED} AND {lowest(A_CLASS, self.labelled)}"
        return (
            f"({POSITIVE} AND {lowest(A_CLASS, self.positives)}) OR "
            f"(NOT {POSITIVE} AND {lowest(A_CLASS, self.negatives)})"
        )


def draw(
    connection: duckdb.DuckDBPyConnection, view: str, *, data: DataSettings, label: Label
) -> Drawn:
    """Make the view `ROWS` and the table `DRAWN`.

    Args:
        view: The rows, with the label as `add_label_views` shows it.
        data: Names the row's key.
        label: Of the task; the data may lack it.

    Raises:
        StoppedByGate: The data lacks a column of the key.
    """
    columns = columns_of(connection, view)
    for name in data.row_key:
        if name not in columns:
            raise StoppedByGate(
                f"the data lacks the column {name!r} of the row's key",
                hint="correct data.row_key, or ask where the column went",
            )
    there = all(name in columns for name in label.shown)
    known = is_labelled(label) if there else "false"
    positive = (
        f"{quoted(label.shown[0])} > 0.5" if there and label.kind == "binary" else "NULL::BOOL"
    )
    connection.execute(
        f"CREATE OR REPLACE VIEW {ROWS} AS SELECT *, {known} AS {LABELLED}, "
        f"{positive} AS {POSITIVE}, {place_of(data)} AS {PLACE} FROM {quoted(view)}"
    )
    counted = connection.execute(
        f"SELECT count(*), count(*) FILTER ({LABELLED}), count(*) FILTER ({POSITIVE}), "
        f"count(*) FILTER (NOT {POSITIVE}) FROM {ROWS}"
    ).fetchall()
    rows, labelled, positives, negatives = (int(number) for number in counted[0])
    drawn = Drawn(view, rows, labelled, positives, negatives)
    connection.execute(
        f"CREATE OR REPLACE TABLE {DRAWN} AS SELECT * FROM {ROWS} WHERE {lowest(SAMPLE, rows)} OR "
        f"{drawn.trusted}"
    )
    return drawn


def is_labelled(label: Label) -> str:
    """SQL: whether all columns of the label, as they are shown, have a value."""
    if label.kind == "multiclass":
        return f"{quoted(label.shown[0])} IS NOT NULL"
    numbers = [f"CAST({quoted(name)} AS DOUBLE)" for name in label.shown]
    return " AND ".join(f"{n} IS NOT NULL AND NOT isnan({n})" for n in numbers)


def place_of(data: DataSettings) -> str:
    """SQL: a hash of a row's key, which does not depend on where the row is."""
    return f"hash({', '.join(quoted(name) for name in data.row_key)})"


def lowest(count: int, rows: int, place: str = PLACE) -> str:
    """SQL for whether a row is among about so many of so many rows: those of lowest place."""
    return "true" if rows <= count else f"{place} < {int(count / rows * 2**64)}"
