"""Great Expectations on a DuckDB connection that is already open, with few scans of the rows.

Great Expectations (GX) 1.24 knows no DuckDB. What it takes is here and in `duckdb_metrics.py`, both
of which lean on parts that GX does not promise to keep: pyproject.toml pins its minor version, and
tests/components/test_duckdb_engine.py holds every kind of expectation against GX on pandas.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import duckdb
import great_expectations as gx
import sqlalchemy
from duckdb_sqlalchemy import ConnectionWrapper
from great_expectations.core.metric_function_types import MetricPartialFunctionTypes
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.datasource.fluent import SQLDatasource
from great_expectations.execution_engine import SqlAlchemyExecutionEngine
from great_expectations.expectations.registry import get_metric_provider

_FREE = ("table.columns", "table.column_types")  # metrics that need the schema only
_COUNT_OF = {  # metrics that give examples, by their end, and those that say how many there are
    ".unexpected_values": ".unexpected_count",
    "distinct_values.not_in_set": "distinct_values.not_in_set.count",
    "distinct_values.missing_from_column": "distinct_values.missing_from_column.count",
}
_SHOWN_ONLY = ("result_format", "limit")  # arguments that say how many examples are wanted


class DuckDBTypes:
    """DuckDB's types as classes, which is how GX compares the types of SQL columns.

    It stands where GX expects a dialect's module. `DremioDialect` is the dialect whose regular
    expressions are DuckDB's: `regexp_matches(column, pattern)`.
    """

    __name__ = "duckdb"
    DremioDialect = True

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._classes: dict[str, type] = {}

    def __getattr__(self, name: str) -> type:
        if name.startswith("_"):
            raise AttributeError(name)
        canonical = canonical_type(self._connection, name)
        if canonical is None:
            raise AttributeError(name)
        return self._classes.setdefault(canonical, type(canonical, (), {"__str__": _own_name}))


def _own_name(instance: object) -> str:
    return type(instance).__name__


def canonical_type(connection: duckdb.DuckDBPyConnection, name: str) -> str | None:
    """Return DuckDB's own name of a type ("int8" is BIGINT), or None where it knows no such."""
    try:
        found = connection.execute(f"SELECT typeof(CAST(NULL AS {name}))").fetchone()
    except duckdb.Error:
        return None
    return str(found[0]) if found else None


class DuckDBExecutionEngine(SqlAlchemyExecutionEngine):  # type: ignore[misc]
    """Runs GX's queries on one connection, and orders them so that most share a scan."""

    _connection: sqlalchemy.Connection | None

    def __init__(self, connection: duckdb.DuckDBPyConnection, **settings: Any) -> None:
        super().__init__(
            engine=sqlalchemy.create_engine(
                "duckdb://",
                creator=lambda: ConnectionWrapper(connection.cursor()),
                poolclass=sqlalchemy.StaticPool,
                isolation_level="AUTOCOMMIT",  # an error would spoil the transaction for the rest
            ),
            create_temp_table=False,
            **settings,
        )
        self.types = DuckDBTypes(connection.cursor())
        self.dialect_module = self.types

    @contextmanager
    def get_connection(self) -> Iterator[sqlalchemy.Connection]:
        """Keep the connection open: GX reads results after it has let go of it."""
        if self._connection is None:
            self._connection = self.engine.connect()
        yield self._connection

    def execute_query(self, query: Any) -> Any:
        """Run a query; examples come in order, without repetition, whatever the threads do."""
        if (
            isinstance(query, sqlalchemy.Select)
            and query._limit_clause is not None
            and not query._order_by_clauses
        ):
            query = query.distinct().order_by(*query.selected_columns)
        return super().execute_query(query)

    def resolve_metrics(
        self,
        metrics_to_resolve: Iterable[Any],
        metrics: dict[Any, Any] | None = None,
        runtime_configuration: dict[str, Any] | None = None,
    ) -> dict[Any, Any]:
        """Resolve some of the metrics that are ready; GX asks again for those left over.

        GX resolves whatever is ready, so that counts would be spread over as many scans as there
        are levels of dependence, and examples looked for where there are none: of 2 million rows
        and 25 expectations, 38 scans. Here what needs no rows goes first, then all counts, and
        examples last.
        """
        ready = list(metrics_to_resolve)
        known = {} if metrics is None else metrics
        turns = [self._turn(metric) for metric in ready]
        chosen = [m for m, turn in zip(ready, turns, strict=True) if turn == min(turns)]
        without: dict[Any, Any] = {m.id: [] for m in chosen if _count_of(m, known) == 0}
        rest = {m for m in chosen if m.id not in without}
        if not rest:
            return without
        resolved: dict[Any, Any] = super().resolve_metrics(rest, known, runtime_configuration)
        return without | resolved

    def _turn(self, metric: Any) -> int:
        if metric.metric_name.endswith(tuple(_COUNT_OF)):
            return 2
        provider = get_metric_provider(metric.metric_name, self)[1]
        kind = getattr(provider, "metric_fn_type", None)
        free = metric.metric_name in _FREE or isinstance(kind, MetricPartialFunctionTypes)
        return 0 if free else 1


def _count_of(metric: Any, known: dict[Any, Any]) -> Any:
    """Return how many examples there are of a metric that lists them; None where unknown."""
    for examples, count in _COUNT_OF.items():
        if metric.metric_name.endswith(examples):
            name = metric.metric_name.removesuffix(examples) + count
            values = {k: v for k, v in metric.metric_value_kwargs.items() if k not in _SHOWN_ONLY}
            wanted = type(metric)(name, metric.metric_domain_kwargs, values or None)
            return known.get(wanted.id)
    return None


class DuckDBDatasource(SQLDatasource):  # type: ignore[misc]
    """The source of a batch; its execution engine is given, not made from a connection string."""

    type: Literal["duckdb"] = "duckdb"

    @property
    def execution_engine_type(self) -> Any:
        return DuckDBExecutionEngine

    def get_engine(self) -> Any:
        return self.get_execution_engine().engine

    def get_execution_engine(self) -> DuckDBExecutionEngine:
        engine: DuckDBExecutionEngine = self._execution_engine
        return engine


@contextmanager
def batch_of(connection: duckdb.DuckDBPyConnection, view: str) -> Iterator[Any]:
    """Give a view's rows as a batch of GX, which can be validated as long as this is open."""
    import components.validate_data.duckdb_metrics  # noqa: F401  # registers itself with GX

    with _quiet():
        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = ProgressBarsConfig(globally=False)
        source = DuckDBDatasource(name="duckdb", connection_string="duckdb://")
        source._data_context = context
        source._execution_engine = DuckDBExecutionEngine(connection)
        asset = source.add_table_asset(view, table_name=view)
        try:
            yield asset.add_batch_definition_whole_table("all").get_batch()
        finally:
            source._execution_engine.close()


@contextmanager
def _quiet() -> Iterator[None]:
    """GX logs what it also returns, warns of its own past, and sets a variable for Snowflake."""
    before = {name: os.environ.get(name) for name in ("SF_PARTNER", "GX_ANALYTICS_ENABLED")}
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    logging.getLogger("great_expectations").setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
