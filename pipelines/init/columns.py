"""What each column of the sample looks like, taken in a few aggregate queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import duckdb

from components.common.tables import quoted

Kind = Literal["boolean", "integer", "float", "text", "time", "other"]

MOST_CATEGORIES = 50  # values of a column that are listed; beyond them it is not "a few"
_AT_ONCE = 40  # columns a query: distinct values are held in memory

_INTEGERS = {
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
}


@dataclass(frozen=True)
class Column:
    """A column of the sample.

    Attributes:
        type: As DuckDB names it.
        rows: Of the sample.
        nulls: Rows without a value; NaN is none.
        distinct: Different values.
        low: Smallest value that is finite, or None.
        high: Largest value that is finite, or None.
        dates: A text whose every value can be read as a time.
        values: All values as text, the most frequent first, of a text with few of them.
    """

    name: str
    type: str
    kind: Kind
    rows: int
    nulls: int
    distinct: int
    low: Any
    high: Any
    dates: bool
    values: tuple[str, ...]

    @property
    def known(self) -> int:
        """Rows with a value."""
        return self.rows - self.nulls

    @property
    def null_share(self) -> float:
        """Share of rows without a value."""
        return self.nulls / self.rows

    @property
    def unique(self) -> bool:
        """Whether it has a value in every row, no two the same."""
        return self.distinct == self.rows


def kind_of(type_: str) -> Kind:
    """What can be done with a column of this DuckDB type."""
    if type_.endswith("]"):
        return "other"
    if type_ == "BOOLEAN":
        return "boolean"
    if type_ in _INTEGERS:
        return "integer"
    if type_ in ("FLOAT", "DOUBLE") or type_.startswith("DECIMAL"):
        return "float"
    if type_ in ("VARCHAR", "UUID") or type_.startswith("ENUM"):
        return "text"
    if type_ == "DATE" or type_.startswith("TIMESTAMP"):
        return "time"
    return "other"


def value_of(name: str, type_: str) -> str:
    """A column in SQL, null where it has no value (NaN is none)."""
    column = quoted(name)
    is_float = type_ in ("FLOAT", "DOUBLE")
    return f"CASE WHEN NOT isnan({column}) THEN {column} END" if is_float else column


def look_at(
    connection: duckdb.DuckDBPyConnection, types: dict[str, str], *, rows: int
) -> list[Column]:
    """Describe the columns of the table `sample`, in order."""
    names, found = list(types), []
    for start in range(0, len(names), _AT_ONCE):
        part = names[start : start + _AT_ONCE]
        wanted = ", ".join(w for name in part for w in _wanted(name, types[name]))
        answer = connection.execute(f"SELECT {wanted} FROM sample").fetchone()
        assert answer is not None
        for i, name in enumerate(part):
            known, distinct, low, high, dates = answer[5 * i : 5 * i + 5]
            kind = kind_of(types[name])
            few = kind == "text" and 0 < distinct <= MOST_CATEGORIES
            found.append(
                Column(
                    name=name,
                    type=types[name],
                    kind=kind,
                    rows=rows,
                    nulls=rows - known,
                    distinct=distinct,
                    low=low,
                    high=high,
                    dates=bool(dates) and known > 0,
                    values=_values(connection, name) if few else (),
                )
            )
    return found


def _wanted(name: str, type_: str) -> list[str]:
    """Five expressions: rows with a value, distinct values, smallest, largest, all dates."""
    kind, value = kind_of(type_), value_of(name, type_)
    if kind == "other":
        return [f"count({quoted(name)})", "0", "NULL", "NULL", "false"]
    finite = f"FILTER (isfinite({quoted(name)}))" if type_ in ("FLOAT", "DOUBLE") else ""
    if type_ == "TIMESTAMP WITH TIME ZONE":
        extremes = f"CAST({quoted(name)} AS TIMESTAMP)"  # Python's would need pytz
    elif kind == "text":
        extremes = f"length(CAST({quoted(name)} AS VARCHAR))"
    else:
        extremes = quoted(name)
    dates = (
        f"bool_and(try_cast({quoted(name)} AS TIMESTAMP) IS NOT NULL) "
        f"FILTER ({quoted(name)} IS NOT NULL)"
        if type_ == "VARCHAR"
        else "false"
    )
    return [
        f"count({value})",
        f"count(DISTINCT {value})",
        f"min({extremes}) {finite}",
        f"max({extremes}) {finite}",
        dates,
    ]


def _values(connection: duckdb.DuckDBPyConnection, name: str) -> tuple[str, ...]:
    column = f"CAST({quoted(name)} AS VARCHAR)"
    found = connection.execute(
        f"SELECT {column} FROM sample WHERE {quoted(name)} IS NOT NULL GROUP BY 1 "
        "ORDER BY count(*) DESC, 1"
    ).fetchall()
    return tuple(row[0] for row in found)
