"""Rules for single rows: those that break one are put aside, each with the rule's name.

A null passes, unless the rule requires a value. NaN is a null: a file written by pandas has nulls
where other writers leave NaN, and a comparison with NaN tells nothing. So `kept` has nulls for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from components.common.column_types import FLOATS, Family, family_of, family_of_values
from components.common.data_settings import RowRule
from components.common.layout import object_key, put_object
from components.common.tables import NUMBER, OBJECT, LocalObject, columns_of, quoted, text
from infra.store import ObjectStore
from training_core.errors import ConfigurationError, StoppedByGate

BROKEN = "broken_rule"
_WORDS: dict[Family, str] = {"number": "numbers", "text": "text", "boolean": "true or false"}


@dataclass(frozen=True)
class Cut:
    """How the rows of a view were divided.

    Attributes:
        rows: All of them.
        broken: Rule, in the order of the rules, and the rows put aside for it. A row counts for the
            first rule that it breaks; a rule that no row breaks is not there.
    """

    rows: int
    broken: dict[str, int]

    @property
    def aside(self) -> int:
        """Rows that broke a rule."""
        return sum(self.broken.values())


def cut(connection: duckdb.DuckDBPyConnection, view: str, rules: Sequence[RowRule]) -> Cut:
    """Divide the rows of a view into the views `kept` and `aside`; one scan of the rules' columns.

    `aside` has one more column, `broken_rule`. `located_kept` and `located_aside` also have those
    of `located_VIEW` that say where a row is.

    Raises:
        StoppedByGate: The column of a rule is absent, or of another type than the rule compares it
            with, or the data has a column of the name that is used here.
        ConfigurationError: A rule says nothing, or nothing that can be checked.
    """
    columns = columns_of(connection, view)
    if BROKEN in columns:
        raise StoppedByGate(
            f"the data has a column {BROKEN!r}, a name that is used here",
            hint="rename the column at its source",
        )
    conditions = {rule.name: _condition(connection, rule, columns) for rule in rules}
    if len(conditions) < len(rules):
        raise ConfigurationError(
            "two row rules have the same name", hint="correct validation.row_rules"
        )
    cases = [f"WHEN {condition} THEN {text(name)}" for name, condition in conditions.items()]
    first = f"CASE {' '.join(cases)} END" if cases else "NULL::VARCHAR"
    counted = connection.execute(
        f"SELECT {first} AS rule, count(*) FROM {quoted(view)} GROUP BY rule"
    ).fetchall()
    found = dict(counted)
    broken = {rule.name: found[rule.name] for rule in rules if rule.name in found}
    # Without a row to put aside `kept` is all rows: no later scan has to look at the rules again.
    kept = f"{first} IS NULL" if broken else "true"
    for prefix in ("", "located_"):
        source = quoted(prefix + view)
        connection.execute(
            f"CREATE OR REPLACE VIEW {prefix}kept AS "
            f"SELECT * {_without_nan(columns)} FROM {source} WHERE {kept}"
        )
        connection.execute(
            f"CREATE OR REPLACE VIEW {prefix}aside AS SELECT *, {first} AS {BROKEN} FROM {source} "
            f"WHERE {first} IS NOT NULL"
        )
    return Cut(rows=sum(found.values()), broken=broken)


def put_aside(
    connection: duckdb.DuckDBPyConnection,
    store: ObjectStore,
    *,
    divided: Cut,
    objects: Sequence[LocalObject],
) -> str:
    """Keep the rows of `located_aside`.

    They become one Parquet file with the columns of the data, `_object` (the object's key in the
    source), `_row` (its number there, from 0) and `broken_rule`, ordered by object and row: the
    same rows always make the same file.

    Args:
        connection: Where `cut` made `located_aside`.
        store: Takes the file, under its content hash.
        divided: What `cut` returned.
        objects: Those of the view that was cut.

    Returns:
        The file's key in the store; "" where no row broke a rule.
    """
    return object_key(_keep(connection, store, objects)) if divided.aside else ""


def hold_to_budget(divided: Cut, kept_as: str, *, store: ObjectStore, budget: float) -> None:
    """Stop where more rows were put aside than the budget allows.

    Args:
        divided: What `cut` returned.
        kept_as: What `put_aside` returned.
        store: That was given to it.
        budget: Share of rows that may be put aside.

    Raises:
        StoppedByGate: Names the rule that was broken most often, and where the rows are.
    """
    if divided.aside > budget * divided.rows:
        worst = max(divided.broken, key=lambda rule: divided.broken[rule])
        raise StoppedByGate(
            f"{divided.aside} of {divided.rows} rows break row rules, more than the budget of "
            f"{budget:.2%} (most often: {worst}, {divided.broken[worst]} times)",
            hint=f"they are kept as {kept_as} (Parquet) in {store.uri}",
        )


def _keep(
    connection: duckdb.DuckDBPyConnection, store: ObjectStore, objects: Sequence[LocalObject]
) -> str:
    folder = connection.execute("SELECT current_setting('temp_directory')").fetchall()[0][0]
    file = Path(folder) / "aside.parquet"  # the one folder that the connection may write to
    file.parent.mkdir(parents=True, exist_ok=True)
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE object_keys AS "
        "SELECT unnest($1::VARCHAR[]) AS path, unnest($2::VARCHAR[]) AS key",
        [[str(each.path) for each in objects], [each.key for each in objects]],
    )
    try:
        connection.execute(
            f"COPY (SELECT a.* REPLACE (coalesce(k.key, a.{OBJECT}) AS {OBJECT}) "
            f"FROM located_aside a LEFT JOIN object_keys k ON k.path = a.{OBJECT} "
            f"ORDER BY coalesce(k.key, a.{OBJECT}), a.{NUMBER}) "
            f"TO {text(str(file))} (FORMAT parquet, COMPRESSION zstd)"
        )
        return put_object(store, file)
    finally:
        file.unlink(missing_ok=True)
        connection.execute("DROP TABLE object_keys")


def _condition(
    connection: duckdb.DuckDBPyConnection, rule: RowRule, columns: Mapping[str, str]
) -> str:
    """Return SQL that is true of a row that breaks a rule, and else false or null."""
    if rule.column not in columns:
        raise StoppedByGate(
            f"the row rule {rule.name!r} looks at column {rule.column!r}, which the data lacks",
            hint="correct validation.row_rules, or ask where the column went",
        )
    value = _value(rule.column, columns[rule.column])
    conditions = [f"{value} IS NULL"] if rule.required else []
    for limit, sign in ((rule.minimum, "<"), (rule.maximum, ">")):
        if limit is not None:
            _refuse_type(rule, columns[rule.column], "number")
            conditions.append(f"{value} {sign} {_literal(limit)}")
    if rule.allowed is not None:
        _refuse_type(rule, columns[rule.column], _allowed_family(rule))
        conditions.append(f"{value} NOT IN ({', '.join(map(_literal, rule.allowed))})")
    if rule.matches is not None:
        _refuse_type(rule, columns[rule.column], "text")
        _refuse_pattern(connection, rule)
        conditions.append(f"NOT regexp_full_match({value}::VARCHAR, {text(rule.matches)})")
    if not conditions:
        raise ConfigurationError(
            f"the row rule {rule.name!r} does not say what it lets through",
            hint="give it minimum, maximum, allowed, matches or required",
        )
    return f"({' OR '.join(conditions)})"


def _refuse_type(rule: RowRule, type_: str, wanted: Family) -> None:
    if family_of(type_) != wanted:
        raise StoppedByGate(
            f"the row rule {rule.name!r} compares column {rule.column!r} with {_WORDS[wanted]}, "
            f"but the data has it as {type_}",
            hint=f"correct validation.row_rules, or write the data again with {_WORDS[wanted]}",
        )


def _allowed_family(rule: RowRule) -> Family:
    family = family_of_values(rule.allowed or [])
    if not rule.allowed or family == "other":
        raise ConfigurationError(
            f"the row rule {rule.name!r} allows {rule.allowed!r}",
            hint="list the values that are let through, all of one kind",
        )
    return family


def _refuse_pattern(connection: duckdb.DuckDBPyConnection, rule: RowRule) -> None:
    try:
        connection.execute("SELECT regexp_full_match('', $1)", [rule.matches])
    except duckdb.Error as error:
        raise ConfigurationError(
            f"the row rule {rule.name!r} has no regular expression but {rule.matches!r}: "
            f"{str(error).splitlines()[0]}",
            hint="the syntax is RE2's, which has no look-around",
        ) from error


def _value(column: str, type_: str) -> str:
    name = quoted(column)
    return f"(CASE WHEN isnan({name}) THEN NULL ELSE {name} END)" if type_ in FLOATS else name


def _without_nan(columns: Mapping[str, str]) -> str:
    replaced = [
        f"{_value(name, type_)} AS {quoted(name)}"
        for name, type_ in columns.items()
        if type_ in FLOATS
    ]
    return f"REPLACE ({', '.join(replaced)})" if replaced else ""


def _literal(value: str | int | float | bool) -> str:
    if isinstance(value, str):
        return text(value)
    return f"CAST('{value!r}' AS DOUBLE)" if isinstance(value, float) else repr(value)
