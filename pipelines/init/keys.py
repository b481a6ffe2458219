"""Which columns together name one row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import duckdb

from components.common.tables import quoted
from pipelines.init.asking import Choice
from pipelines.init.columns import Column
from pipelines.init.label import no_such_column
from pipelines.init.naming import names_a_thing, names_an_entity
from training_core.errors import ConfigurationError

_MOST_COLUMNS = 4  # of a key
_MOST_CANDIDATES = 12  # 793 combinations
_TRIAL_ROWS = 20_000  # most combinations fail already on these
_AT_ONCE = 25


def choose_key(
    connection: duckdb.DuckDBPyConnection, columns: Sequence[Column], *, time: str
) -> Choice[list[str]]:
    """Find the fewest columns that are unique in the sample and in all rows that were read.

    A single column called like an id comes first, then any other column that counts or names, then
    combinations of two to four. Measurements (floats) name nothing, however unique they are.

    Args:
        columns: All of them, without the label.
        time: The time column, or "".
    """
    fit = [c for c in columns if c.kind in ("integer", "text", "time") and not c.nulls]
    fit = [c for c in fit if c.distinct > 1]
    singles = sorted(
        (c for c in fit if c.unique),
        key=lambda c: (not names_a_thing(c.name), c.kind == "time"),
    )
    for column in singles:
        if is_unique(connection, "everything", [column.name]):
            return Choice([[column.name]], clear=True, why="unique in all rows that were read")
    likely = sorted(fit, key=lambda c: (-_likelihood(c, time), -c.distinct))[:_MOST_CANDIDATES]
    for count in range(2, _MOST_COLUMNS + 1):
        for names in _passing(connection, combinations(likely, count)):
            if is_unique(connection, "everything", names):
                why = "the fewest columns found that are unique in all rows that were read"
                return Choice([names], clear=True, why=why)
    tried = ", ".join(c.name for c in likely) or "no column without nulls"
    why = f"no {_MOST_COLUMNS} or fewer are unique of {tried} ({_repeated(connection)})"
    return Choice([], clear=False, why=why)


def check_key(
    connection: duckdb.DuckDBPyConnection, columns: Sequence[Column], key: Sequence[str]
) -> None:
    """Hold a key that a person named against the rows that were read.

    Raises:
        ConfigurationError: A column is missing or has nulls, or two rows share a key.
    """
    if not key:
        raise ConfigurationError("no column was named as the row's key", hint="pass --key COLUMN")
    for name in key:
        column = next((c for c in columns if c.name == name), None)
        if column is None:
            raise no_such_column(name, columns, option="--key")
        if column.nulls:
            raise ConfigurationError(
                f"--key {name}: {column.nulls:,} of {column.rows:,} rows of the sample have none",
                hint="name columns that every row has",
            )
    if not is_unique(connection, "everything", key):
        raise ConfigurationError(
            f"--key {','.join(key)} does not name one row: some rows share it "
            f"({_repeated(connection)})",
            hint="add a column that tells them apart, or remove rows that are there twice",
        )


def is_unique(connection: duckdb.DuckDBPyConnection, table: str, names: Sequence[str]) -> bool:
    """Whether no two rows agree in these columns, by a 64-bit hash of them."""
    (found,) = _distinct(connection, table, [names])
    return found


def _likelihood(column: Column, time: str) -> int:
    """Ids and who they belong to, then when, then other texts, then whole numbers."""
    if names_a_thing(column.name) or names_an_entity(column.name):
        return 4
    if column.name == time:
        return 3
    return {"text": 2, "integer": 1}.get(column.kind, 0)


def _passing(
    connection: duckdb.DuckDBPyConnection, tried: Iterable[tuple[Column, ...]]
) -> list[list[str]]:
    """Combinations that are unique in the sample, in order."""
    wanted = [[c.name for c in columns] for columns in tried]
    for table in (f"(SELECT * FROM sample LIMIT {_TRIAL_ROWS})", "sample"):
        kept = []
        for start in range(0, len(wanted), _AT_ONCE):
            part = wanted[start : start + _AT_ONCE]
            kept += [n for n, u in zip(part, _distinct(connection, table, part), strict=True) if u]
        wanted = kept
    return wanted


def _distinct(
    connection: duckdb.DuckDBPyConnection, table: str, tried: Sequence[Sequence[str]]
) -> list[bool]:
    hashes = ", ".join(f"count(DISTINCT hash({', '.join(map(quoted, n))}))" for n in tried)
    found = connection.execute(f"SELECT count(*), {hashes} FROM {table}").fetchone()
    assert found is not None
    return [count == found[0] for count in found[1:]]


def _repeated(connection: duckdb.DuckDBPyConnection) -> str:
    """How many rows are there more than once, as a whole."""
    found = connection.execute(
        'SELECT count(*) - count(DISTINCT hash("whole row")) FROM everything AS "whole row"'
    ).fetchone()
    assert found is not None
    return f"{found[0]:,} rows repeat another one in every column" if found[0] else "no row repeats"
