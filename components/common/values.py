"""What a column's values are, in SQL, whatever the type they are stored as."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from components.common.tables import quoted
from training_core.errors import StoppedByGate

Kind = Literal["whole", "real", "boolean", "time", "text"]

_WHOLE = {f"{sign}{name}" for sign in ("", "U") for name in
          ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")}  # fmt: skip


def kind_of(type_name: str) -> Kind:
    """Return what a DuckDB type holds; what is neither number nor time is read as text."""
    if type_name in _WHOLE or (type_name.startswith("DECIMAL") and type_name.endswith(",0)")):
        return "whole"
    if type_name in ("FLOAT", "DOUBLE") or type_name.startswith("DECIMAL"):
        return "real"
    if type_name == "BOOLEAN":
        return "boolean"
    if type_name == "DATE" or type_name.startswith("TIMESTAMP"):
        return "time"
    return "text"


def known(column: str, type_name: str) -> str:
    """The value, or NULL where there is none; NaN is no value."""
    name = quoted(column)
    if type_name in ("FLOAT", "DOUBLE"):
        return f"CASE WHEN isnan({name}) THEN NULL ELSE {name} END"
    return name


def number(column: str, type_name: str) -> str:
    """The value as a DOUBLE that sorts as it does (times: microseconds); NULL for text."""
    kind = kind_of(type_name)
    if kind == "text":
        return "CAST(NULL AS DOUBLE)"
    if kind == "time":
        return f"CAST(epoch_us({quoted(column)}) AS DOUBLE)"
    return f"CAST({known(column, type_name)} AS DOUBLE)"


def utc(column: str, columns: Mapping[str, str]) -> str:
    """A column as TIMESTAMPTZ; text that is no time becomes NULL.

    The session's time zone must be UTC, as `open_tables` sets it: times without a zone are UTC.

    Args:
        column: Its name.
        columns: Types by name.

    Raises:
        StoppedByGate: The column is missing, or holds numbers, whose unit nobody knows.
    """
    if column not in columns:
        raise StoppedByGate(
            f"the data lacks the time column {column!r}",
            hint="correct data.time_column, or ask where the column went",
        )
    kind = kind_of(columns[column])
    if kind == "time":
        return f"CAST({quoted(column)} AS TIMESTAMPTZ)"
    if kind == "text":
        return f"TRY_CAST({quoted(column)} AS TIMESTAMPTZ)"
    raise StoppedByGate(
        f"the time column {column!r} holds {columns[column]}, no times",
        hint="write timestamps: a number does not say whether it counts seconds or days",
    )
