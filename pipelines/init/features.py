"""Which columns the network reads and how, and why the others are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb

from components.common.data_settings import ValidationSettings
from components.common.tables import quoted
from pipelines.init.columns import Column
from pipelines.init.naming import names_a_thing
from training_core.errors import StoppedByGate

LEAK_AUC: float = ValidationSettings().leak_auc  # what validate_data would stop at
MOST_VALUES = 1_000  # of a category
LEAST_ROWS = 20  # of a value, on average, for a column to be a category
_FEW = 50  # whole numbers up to which a column is a category
_ORDERED = 10  # beyond this many, whole numbers are read as numbers as well
_LEAST_CLASS = 20  # rows of the rarer class below which an AUC says nothing


@dataclass
class Features:
    """What the network reads.

    Attributes:
        both: Columns that are read as categories and as numbers.
        left_out: Column -> reason.
        auc: What each column alone knows of the label.
    """

    categories: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    both: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    auc: dict[str, float] = field(default_factory=dict)

    @property
    def used(self) -> list[str]:
        """Every column that is read, once."""
        return list(dict.fromkeys([*self.categories, *self.numbers]))


def choose_features(
    connection: duckdb.DuckDBPyConnection,
    columns: Sequence[Column],
    *,
    label: str,
    time: str,
    key: Sequence[str],
    auc: dict[str, float],
    rarer_class: int,
) -> Features:
    """Give each column its part.

    Args:
        auc: What each column alone knows of the label.
        rarer_class: Rows of the sample; with few, no column is called a leak.

    Raises:
        StoppedByGate: Nothing is left to learn from.
    """
    found = Features(auc=auc)
    for column in columns:
        if column.name == label:
            found.left_out[column.name] = "the label"
            continue
        if column.name == time:
            found.left_out[column.name] = "the time: rows to come are all later than those learned"
            continue
        why = (
            _says_nothing(column)
            or _names_the_row(connection, column, key)
            or _knows_too_much(column, auc, rarer_class)
        )
        if why:
            found.left_out[column.name] = why
        elif _is_category(column):
            found.categories.append(column.name)
            if column.kind == "integer" and column.distinct > _ORDERED:
                found.both.append(column.name)
                found.numbers.append(column.name)
        else:
            found.numbers.append(column.name)
    if not found.used:
        reasons = "; ".join(f"{name}: {why}" for name, why in found.left_out.items())
        raise StoppedByGate(
            f"no column is left to learn from ({reasons})",
            hint="bring columns that describe a row",
        )
    return found


def _says_nothing(column: Column) -> str:
    if not column.known:
        return "no value in any row"
    if column.distinct == 1 and not column.nulls:
        return "the same value in every row"
    if column.kind == "other":
        return f"its type is {column.type}; the network reads numbers and categories"
    if column.kind == "time":
        return (
            "another time: as a number it would outgrow what was learned; a difference to "
            "the row's own time would not"
        )
    if column.dates:
        return "a date as text: days to come were never seen"
    return ""


def _names_the_row(
    connection: duckdb.DuckDBPyConnection, column: Column, key: Sequence[str]
) -> str:
    per_value = column.known / column.distinct
    few = column.distinct <= MOST_VALUES and per_value >= LEAST_ROWS
    if list(key) == [column.name]:
        return "the row's key: it names the row instead of describing it"
    if column.name in key and not few:
        return f"part of the row's key, with {column.distinct:,} values"
    if column.kind == "text" and not few:
        if per_value < 2:
            return f"an id or free text: {column.distinct:,} values in {column.known:,} rows"
        return f"{column.distinct:,} values, {per_value:.0f} rows each: too many to learn"
    if column.kind == "integer" and names_a_thing(column.name) and not few:
        return f"an id by its name, with {column.distinct:,} values"
    if column.kind == "integer" and column.unique and _counts_rows(connection, column):
        return "a serial number: it counts rows"
    return ""


def _counts_rows(connection: duckdb.DuckDBPyConnection, column: Column) -> bool:
    """Whether the values that were read are consecutive: each one there, each one once."""
    name = quoted(column.name)
    found = connection.execute(
        f"SELECT count(*), max({name}) - min({name}) + 1 FROM everything"
    ).fetchone()
    assert found is not None
    return bool(found[0] == found[1])


def _knows_too_much(column: Column, auc: dict[str, float], rarer_class: int) -> str:
    known = auc.get(column.name, 0.5)
    if known <= LEAK_AUC or rarer_class < _LEAST_CLASS:
        return ""
    return f"looks like a leak: it alone ranks the label with an AUC of {known:.3f}"


def _is_category(column: Column) -> bool:
    if column.kind in ("text", "boolean"):
        return True
    few = _FEW if not names_a_thing(column.name) else MOST_VALUES
    return (
        column.kind == "integer"
        and column.distinct <= few
        and column.known / column.distinct >= LEAST_ROWS
    )
