"""Rows, suite and project that `benchmarks/validate.py` measures with: 20 columns of a shop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb

FILES = 8  # that the rows are divided into
KEY, TIME, LABEL = "order_id", "ordered_at", "returned"
COUNTRIES = [f"C{number:02}" for number in range(30)]
DEVICES = ["phone", "tablet", "desktop", "watch"]
PLANS = ["free", "basic", "plus", "team"]

# Each value is a function of the row's number alone, so that any machine makes the same rows.
# `u` is uniform in [0, 1), `n` about normal (a sum of four); the second argument makes it another.
_COLUMNS = {
    KEY: "number",
    "customer": "(u(number, 1) * 1e6)::BIGINT",
    TIME: "TIMESTAMP '2025-01-01' "
    "+ to_microseconds((30 * 86400e6 * (number // 1e9 + number % 1e9 / total))::BIGINT)",
    "shipped_at": f"{TIME} + to_microseconds((3600e6 + u(number, 2) * 1e11)::BIGINT)",
    "country": "'C' || lpad((30 * u(number, 3) * u(number, 3))::INTEGER::VARCHAR, 2, '0')",
    "device": "['phone', 'tablet', 'desktop', 'watch'][1 + (u(number, 4) * 3.99)::INTEGER % 4]",
    "plan": "CASE WHEN u(number, 5) < 0.02 THEN NULL ELSE "
    "['free', 'basic', 'plus', 'team'][1 + (u(number, 6) * 3.99)::INTEGER % 4] END",
    "code": "'AB-' || lpad((u(number, 7) * 9999)::INTEGER::VARCHAR, 4, '0')",
    "amount": "exp(3 + n(number, 8))",
    "price": "round(5 + 200 * u(number, 9) * u(number, 10), 2)",
    "discount": "CASE WHEN u(number, 11) < 0.6 THEN 0.0 ELSE round(0.5 * u(number, 12), 2) END",
    "weight": "2 + 0.5 * n(number, 13)",
    "temperature": "CASE WHEN u(number, 14) < 0.05 THEN NULL ELSE 12 + 8 * n(number, 15) END",
    "latitude": "35 + 25 * u(number, 16)",
    "longitude": "-10 + 40 * u(number, 17)",
    "age": "CASE WHEN u(number, 18) < 0.1 THEN NULL ELSE 18 + (60 * u(number, 19))::INTEGER END",
    "visits": "(u(number, 20) * u(number, 21) * 50)::INTEGER",
    "score": "u(number, 22)",
    "member": "u(number, 23) < 0.3",
    LABEL: "CASE WHEN u(number, 24) < 0.01 THEN NULL "
    "WHEN 1 / (1 + exp(2 - 3 * score - discount)) > u(number, 25) THEN 1e0 ELSE 0e0 END",
}


def write_rows(folder: Path, rows: int, *, month: int = 0) -> list[Path]:
    """Write the rows of a month of 30 days as Parquet files of equal size; return their paths.

    Args:
        month: From 0; each has rows and keys of its own.
    """
    folder.mkdir(parents=True)
    connection = duckdb.connect(config={"memory_limit": "1GB", "preserve_insertion_order": True})
    connection.execute(
        "CREATE MACRO u(number, k) AS hash(number * 512 + k) / 1.8446744073709552e19"
    )
    connection.execute(
        "CREATE MACRO n(number, k) AS (u(number, k) + u(number, k + 100) + u(number, k + 200) "
        "+ u(number, k + 300) - 2) * sqrt(3)"
    )
    columns = ", ".join(f"{value} AS {name}" for name, value in _COLUMNS.items())
    paths = []
    for file in range(FILES):
        first, end = (month * 10**9 + rows * n // FILES for n in (file, file + 1))
        paths.append(folder / f"part-{file}.parquet")
        connection.execute(
            f"COPY (SELECT {columns} FROM (SELECT range AS number, {rows} AS total "
            f"FROM range({first}, {end}))) TO '{paths[-1]}' (COMPRESSION zstd)"
        )
    connection.close()
    return paths


def _expect(kind: str, severity: str = "critical", **arguments: Any) -> dict[str, Any]:
    kind = kind if kind.startswith("unexpected") else f"expect_{kind}"
    return {"type": kind, "kwargs": arguments, "meta": {}, "severity": severity}


def suite() -> dict[str, Any]:
    """The 25 expectations, all of which the rows meet; as `ExpectationSuite.to_json_dict`."""
    expectations = [
        _expect("table_columns_to_match_set", column_set=list(_COLUMNS), exact_match=True),
        _expect("table_row_count_to_be_between", min_value=1000, max_value=10**9),
        _expect("column_values_to_be_unique", column=KEY),
        _expect("compound_columns_to_be_unique", column_list=["customer", TIME]),
        _expect("column_values_to_not_be_null", column="customer"),
        _expect("column_values_to_not_be_null", column="plan", mostly=0.95),
        _expect("column_values_to_not_be_null", column="temperature", mostly=0.9),
        _expect("column_values_to_not_be_null", column=LABEL, mostly=0.98),
        _expect("column_values_to_be_in_set", column="device", value_set=DEVICES),
        _expect("column_values_to_be_in_set", column="plan", value_set=PLANS),
        _expect("column_values_to_be_in_set", column=LABEL, value_set=[0.0, 1.0]),
        _expect("column_values_to_be_between", column="price", min_value=0, max_value=1000),
        _expect("column_values_to_be_between", column="discount", min_value=0, max_value=0.5),
        _expect("column_values_to_be_between", column="age", min_value=0, max_value=120),
        _expect("column_values_to_be_between", column="latitude", min_value=-90, max_value=90),
        _expect("column_values_to_match_regex", column="code", regex=r"^AB-\d{4}$"),
        _expect("column_value_lengths_to_equal", column="country", value=3),
        _expect("column_distinct_values_to_be_in_set", column="country",
                value_set=[*COUNTRIES, "C30"]),
        _expect("column_mean_to_be_between", column=LABEL, min_value=0.1, max_value=0.9),
        _expect("column_median_to_be_between", column="amount", min_value=10, max_value=40),
        _expect("column_stdev_to_be_between", column="weight", min_value=0.3, max_value=0.7),
        _expect("column_quantile_values_to_be_between", column="temperature",
                quantile_ranges={"quantiles": [0.05, 0.5, 0.95],
                                 "value_ranges": [[-10, 10], [5, 20], [15, 40]]}),
        _expect("column_unique_value_count_to_be_between", column="country",
                min_value=10, max_value=40),
        _expect("column_pair_values_a_to_be_greater_than_b", column_A="shipped_at", column_B=TIME),
        _expect("unexpected_rows_expectation",
                unexpected_rows_query="SELECT * FROM {batch} WHERE discount > 0 AND price < 0"),
    ]  # fmt: skip
    return {"name": "orders", "expectations": expectations, "meta": {}}


def write_suite(path: Path) -> Path:
    """Write the suite as JSON."""
    path.write_text(json.dumps(suite()))
    return path
