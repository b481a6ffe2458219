"""The label: which of its two values is the positive one."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from components.common.tables import text
from pipelines.init.columns import Column, value_of
from training_core.errors import ConfigurationError, StoppedByGate

Value = bool | int | float | str

# Of a pair, the value that says yes.
_YES = {"yes", "y", "true", "t", "1", "positive", "pos", "on", "bad", "fail", "failed", "fraud"}
_NO = {"no", "n", "false", "f", "0", "negative", "neg", "off", "good", "ok", "pass", "passed"}


@dataclass(frozen=True)
class Label:
    """The column that is predicted.

    Attributes:
        positive: The value that counts as 1.
        negative: The value that counts as 0.
        rate: Share of labelled rows that are positive.
        labelled: Share of rows that have a label.
        why: How the positive value was chosen.
    """

    name: str
    type: str
    positive: Value
    negative: Value
    rate: float
    labelled: float
    why: str

    @property
    def plain(self) -> bool:
        """Whether it is 0 and 1, or false and true, and needs no mapping."""
        return (self.negative, self.positive) == (0, 1)

    @property
    def sql(self) -> str:
        """1.0, 0.0 or null, as an expression over a table of the rows."""
        value = value_of(self.name, self.type)
        positive, negative = _literal(self.positive), _literal(self.negative)
        return f"CAST(CASE {value} WHEN {positive} THEN 1 WHEN {negative} THEN 0 END AS DOUBLE)"


def look_at_label(
    connection: duckdb.DuckDBPyConnection, columns: Sequence[Column], name: str
) -> Label:
    """Read the label's two values.

    Raises:
        ConfigurationError: No such column, or one that is not binary.
        StoppedByGate: No row has a label, or all have the same.
    """
    column = next((c for c in columns if c.name == name), None)
    if column is None:
        raise no_such_column(name, columns, option="--label")
    if column.kind in ("time", "other") or column.distinct > 2:
        raise ConfigurationError(
            f"the label {name!r} is not binary: it is {column.type} with {column.distinct:,} "
            f"values{_examples(column)}",
            hint="write a column that says yes or no, for example whether the value is above a "
            f"limit, and name that; {_binary_words(columns)}",
        )
    value = value_of(name, column.type)
    if column.kind == "text":
        value = f"CAST({value} AS VARCHAR)"  # an ENUM, too, is told apart by its words
    elif column.type.startswith("DECIMAL"):
        value = f"CAST({value} AS DOUBLE)"
    counts = dict(
        connection.execute(
            f"SELECT {value}, count(*) FROM sample WHERE {value} IS NOT NULL GROUP BY 1 ORDER BY 1"
        ).fetchall()
    )
    if len(counts) < 2:
        said = f"all labels are {next(iter(counts))!r}" if counts else "no row has a label"
        raise StoppedByGate(
            f"{said} ({name!r}, {column.known:,} of {column.rows:,} rows of the sample): there is "
            "nothing to tell apart",
            hint="bring rows of both classes, or name another column with --label",
        )
    negative, positive, why = _told_apart(counts)
    known = sum(counts.values())
    return Label(
        name=name,
        type=column.type,
        positive=positive,
        negative=negative,
        rate=counts[positive] / known,
        labelled=known / column.rows,
        why=why,
    )


def binary_columns(columns: Sequence[Column]) -> list[str]:
    """Columns with two values, which could be a label."""
    return [c.name for c in columns if c.distinct == 2 and c.kind not in ("time", "other")]


def no_such_column(name: str, columns: Sequence[Column], *, option: str) -> ConfigurationError:
    """The error for a column that the data lacks, with the names near it."""
    names = [c.name for c in columns]
    folded = {n.casefold(): n for n in reversed(names)}
    near = [folded[n] for n in difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)]
    more = ", …" if len(names) > 20 else ""
    return ConfigurationError(
        f"{option} {name!r}: the data has no such column",
        hint=(f"did you mean {' or '.join(map(repr, near))}? " if near else "")
        + f"its columns are {', '.join(names[:20])}{more}",
    )


def _told_apart(counts: dict[Value, int]) -> tuple[Value, Value, str]:
    """Negative, positive, and why."""
    low, high = sorted(counts)
    if (low, high) == (0, 1):
        return low, high, "1 is positive" if not isinstance(high, bool) else "true is positive"
    if not isinstance(low, str):
        return low, high, f"{high!r}, the larger, is positive"
    for no, yes in ((low, high), (high, low)):
        if str(yes).strip().lower() in _YES or str(no).strip().lower() in _NO:
            return no, yes, f"{yes!r} says yes, so it is positive"
    rare, common = sorted(counts, key=lambda v: (counts[v], str(v)))
    return common, rare, f"{rare!r} is rarer, so it was taken as positive: a guess"


def _examples(column: Column) -> str:
    if column.values:
        return ", among them " + ", ".join(map(repr, column.values[:4]))
    return f", from {column.low} to {column.high}" if column.kind in ("integer", "float") else ""


def _binary_words(columns: Sequence[Column]) -> str:
    names = binary_columns(columns)
    return "two values have: " + ", ".join(names[:10]) if names else "no column has two values"


def _literal(value: Value) -> str:
    return text(value) if isinstance(value, str) else repr(value)
