"""What GX would compute of DuckDB in a slow way, or not at all, computed in DuckDB's way.

Importing this registers the functions with GX for `DuckDBExecutionEngine`; it is GX's own way for
an engine to have metrics of its own. Each says what GX does instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa
from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.core.metric_function_types import MetricFunctionTypes
from great_expectations.expectations.registry import (
    get_metric_kwargs,
    get_sqlalchemy_metric_provider,
    register_metric,
)
from great_expectations.util import get_sqlalchemy_selectable

from components.common.tables import quoted
from components.validate_data.duckdb_engine import DuckDBExecutionEngine

_HELD = 25_000_000  # rows of which a column's values are held in memory, 16 bytes each at most
_SAMPLED = 200_000  # values behind a bracket: its rank is off by 0.11% (standard deviation) at most
_DEVIATIONS = 6  # half the width of a bracket; a miss costs time, never exactness

Metric = Callable[..., Any]
Rank = Callable[[int], int]


def _computes(name: str) -> Callable[[Metric], Metric]:
    def register(function: Metric) -> Metric:
        keys = get_metric_kwargs(name)
        register_metric(
            metric_name=name,
            metric_domain_keys=keys["metric_domain_keys"],
            metric_value_keys=keys["metric_value_keys"],
            execution_engine=DuckDBExecutionEngine,
            metric_class=get_sqlalchemy_metric_provider(name)[0],
            metric_provider=function,
            metric_fn_type=MetricFunctionTypes.VALUE,
        )
        return function

    return register


@_computes("table.column_types")
def _column_types(execution_engine: DuckDBExecutionEngine, **_: Any) -> list[dict[str, Any]]:
    """GX reflects SQLAlchemy's types: a VARCHAR is a "String", and a HUGEINT unknown."""
    view = execution_engine.batch_manager.active_batch_data.source_table_name
    described = execution_engine.execute_query(sa.text(f"DESCRIBE {quoted(view)}"))
    return [
        {"name": name, "type": getattr(execution_engine.types, type_)()}
        for name, type_, *_ in described.fetchall()
    ]


@_computes("unexpected_rows_query.table")
def _no_rows(**_: Any) -> list[dict[str, Any]]:
    """GX reads up to 200 whole rows, which the result format BASIC then leaves out."""
    return []


@_computes("column_values.nonnull.unexpected_values")
def _nulls(**_: Any) -> list[Any]:
    """GX looks for examples of nulls, which are all alike."""
    return []


@_computes("column_values.unique.unexpected_count")
def _repeated_count(
    execution_engine: DuckDBExecutionEngine, metric_domain_kwargs: dict[str, Any], **_: Any
) -> int:
    """GX counts over a window, which sorts the rows: 4 times the time, and spills."""
    groups = _repeated(execution_engine, metric_domain_kwargs, MetricDomainTypes.COLUMN)
    return _rows_in(execution_engine, groups)


@_computes("column_values.unique.unexpected_values")
def _repeated_values(
    execution_engine: DuckDBExecutionEngine,
    metric_domain_kwargs: dict[str, Any],
    metric_value_kwargs: dict[str, Any],
    **_: Any,
) -> list[Any]:
    groups = _repeated(execution_engine, metric_domain_kwargs, MetricDomainTypes.COLUMN)
    return [row[0] for row in _first(execution_engine, groups, metric_value_kwargs)]


@_computes("compound_columns.unique.unexpected_count")
def _repeated_together_count(
    execution_engine: DuckDBExecutionEngine, metric_domain_kwargs: dict[str, Any], **_: Any
) -> int:
    """GX joins all columns with the groups, and loses rows with a null among the columns."""
    groups = _repeated(execution_engine, metric_domain_kwargs, MetricDomainTypes.MULTICOLUMN)
    return _rows_in(execution_engine, groups)


@_computes("compound_columns.unique.unexpected_values")
def _repeated_together_values(
    execution_engine: DuckDBExecutionEngine,
    metric_domain_kwargs: dict[str, Any],
    metric_value_kwargs: dict[str, Any],
    **_: Any,
) -> list[dict[str, Any]]:
    groups = _repeated(execution_engine, metric_domain_kwargs, MetricDomainTypes.MULTICOLUMN)
    names = metric_domain_kwargs["column_list"]
    found = _first(execution_engine, groups, metric_value_kwargs)
    return [dict(zip(names, row[:-1], strict=True)) for row in found]


def _repeated(
    engine: DuckDBExecutionEngine, domain: dict[str, Any], kind: MetricDomainTypes
) -> sa.Subquery:
    """Select each combination of values that several rows have, and `_rows`, how many have it."""
    records = get_sqlalchemy_selectable(engine.get_domain_records(domain_kwargs=domain))
    accessor = engine.get_compute_domain(domain, kind)[2]
    names = accessor["column_list"] if "column_list" in accessor else [accessor["column"]]
    columns: list[sa.ColumnClause[Any]] = [sa.column(name) for name in names]
    grouped = sa.select(*columns, sa.func.count().label("_rows")).select_from(records)
    if len(columns) == 1:
        grouped = grouped.where(columns[0].is_not(None))
    return grouped.group_by(*columns).having(sa.func.count() > 1).subquery("repeated")


def _rows_in(engine: DuckDBExecutionEngine, groups: sa.Subquery) -> int:
    total = sa.select(sa.func.coalesce(sa.func.sum(groups.c["_rows"]), 0))
    return int(engine.execute_query(total).scalar_one())


def _first(
    engine: DuckDBExecutionEngine, groups: sa.Subquery, values: dict[str, Any]
) -> Sequence[Any]:
    wanted = sa.select(groups).limit(values["result_format"]["partial_unexpected_count"])
    found: Sequence[Any] = engine.execute_query(wanted).fetchall()
    return found


@_computes("column.median")
def _median(
    execution_engine: DuckDBExecutionEngine, metric_domain_kwargs: dict[str, Any], **_: Any
) -> float | None:
    """GX sorts the column."""
    # The two middle values of an even number of them; the same one twice of an odd number.
    middle: list[Rank] = [lambda count: (count + 1) // 2, lambda count: count // 2 + 1]
    low, high = _order_statistics(execution_engine, metric_domain_kwargs, [0.5], middle)
    return None if low is None else (float(low) + float(high)) / 2


@_computes("column.quantile_values")
def _quantiles(
    execution_engine: DuckDBExecutionEngine,
    metric_domain_kwargs: dict[str, Any],
    metric_value_kwargs: dict[str, Any],
    **_: Any,
) -> list[Any]:
    """GX asks for each quantile by itself, and holds every value however many there are."""
    shares = metric_value_kwargs["quantiles"]

    def rank_of(share: float) -> Rank:
        return lambda count: max(1, math.ceil(share * count))

    ranks = [rank_of(share) for share in shares]
    return _order_statistics(execution_engine, metric_domain_kwargs, shares, ranks)


def _order_statistics(
    engine: DuckDBExecutionEngine,
    domain: dict[str, Any],
    shares: Sequence[float],
    ranks: Sequence[Rank],
) -> list[Any]:
    """Return the values of exact ranks (from 1, of the number of values), or None without values.

    Of many rows, not all values are held: a sample says between which values each of them lies; a
    second look sorts what is there and counts the rest. So memory does not grow with the rows, and
    chance decides about time only. Of few that takes longer: 6.4 s instead of 3.8 s of CPU for four
    quantiles of 20 million rows.
    """
    records = get_sqlalchemy_selectable(engine.get_domain_records(domain_kwargs=domain))
    name = engine.get_compute_domain(domain, MetricDomainTypes.COLUMN)[2]["column"]
    source = sa.select(sa.column(name).label("value")).select_from(records).subquery("source")
    total, count = engine.execute_query(
        sa.select(sa.func.count(), sa.func.count(source.c.value)).select_from(source)
    ).one()
    if count == 0:
        return [None for _ in ranks]
    wanted = [rank(count) for rank in ranks]
    if total <= _HELD:  # half a rank off any rounding
        quantiles = _quantiles_of(source, [(rank - 0.5) / count for rank in wanted])
        return list(engine.execute_query(sa.select(quantiles)).scalar_one())
    found = _values_of(engine, source, _brackets(engine, source, shares, total), wanted)
    return found if None not in found else _values_of(engine, source, [], wanted)


def _brackets(
    engine: DuckDBExecutionEngine, source: sa.Subquery, shares: Sequence[float], total: int
) -> list[tuple[Any, Any]]:
    """Return pairs of values, apart and in order, that the quantiles probably lie between."""
    widths = [_DEVIATIONS * math.sqrt(share * (1 - share) / _SAMPLED) for share in shares]
    edges = [
        min(1.0, max(0.0, edge))
        for share, width in zip(shares, widths, strict=True)
        for edge in (share - width, share + width)
    ]
    sampled = _quantiles_of(source, edges).filter(sa.func.random() < _SAMPLED / total)
    values = engine.execute_query(sa.select(sampled)).scalar_one()
    return _apart(list(zip(values[::2], values[1::2], strict=True))) if values else []


def _quantiles_of(source: sa.Subquery, shares: Sequence[float]) -> Any:
    listed = sa.text(f"[{', '.join(map(repr, shares))}]")
    return sa.func.quantile_disc(source.c.value, listed)


def _apart(pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Join brackets that touch each other, so that they can be counted through in order."""
    joined: list[tuple[Any, Any]] = []
    for low, high in sorted(pairs):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined


def _values_of(
    engine: DuckDBExecutionEngine,
    source: sa.Subquery,
    brackets: list[tuple[Any, Any]],
    ranks: Sequence[int],
) -> list[Any]:
    """Return the values of ranks that lie within a bracket, None for others; no bracket: of all."""
    value = source.c.value
    everything = sa.false() if brackets else sa.true()
    within = sa.or_(everything, *(value.between(low, high) for low, high in brackets))
    below = sum((sa.cast(value > high, sa.Integer) for _, high in brackets), sa.literal(0))
    groups = (
        sa.select(
            below.label("gap"), sa.case((within, value)).label("value"), sa.func.count().label("n")
        )
        .where(value.is_not(None))
        .group_by(sa.text("1"), sa.text("2"))
        .subquery("groups")
    )
    # Between two brackets all values are one group without a value, before the next bracket's own.
    order = (groups.c.gap, groups.c.value.nulls_first())
    upto = sa.select(
        groups.c.value, sa.func.sum(groups.c.n).over(order_by=order).label("upto")
    ).subquery("upto")
    first = [
        sa.func.arg_min_null(upto.c.value, upto.c.upto).filter(upto.c.upto >= rank)
        for rank in ranks
    ]
    return list(engine.execute_query(sa.select(*first)).one())
