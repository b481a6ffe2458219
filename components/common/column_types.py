"""What the values of a DuckDB column can be compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Family = Literal["number", "text", "time", "boolean", "other"]

_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT",
            "UINTEGER", "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "BIGNUM")  # fmt: skip
FLOATS = ("FLOAT", "DOUBLE")  # those that can be NaN


def family_of(type_: str) -> Family:
    """Return the family of a type as DuckDB names it, for example "DECIMAL(10,2)"."""
    if type_.endswith("]"):  # a list
        return "other"
    name = type_.split("(")[0]
    if name in _NUMBERS:
        return "number"
    if name in ("VARCHAR", "ENUM", "UUID"):
        return "text"
    if name.startswith(("TIMESTAMP", "DATE", "TIME")):
        return "time"
    return "boolean" if name == "BOOLEAN" else "other"


def family_of_values(values: Sequence[object]) -> Family:
    """Return the family that values from JSON or YAML belong to; "other" where they are mixed."""
    if all(isinstance(value, bool) for value in values):
        return "boolean"
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        return "number"
    return "text" if all(isinstance(value, str) for value in values) else "other"
