"""What `benchmarks/validate.py` measures ours beside: plain DuckDB, and GX on pandas."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.validate_rows import DEVICES, KEY, LABEL, PLANS, TIME, suite

NUMBERS = ["customer", "amount", "price", "discount", "weight", "temperature", "latitude",
           "longitude", "age", "visits", "score", LABEL]  # fmt: skip
CATEGORIES = ["country", "device", "plan", "code", "member"]
TIMES = [TIME, "shipped_at"]
EDGES = 20


def plain_duckdb(files: Sequence[Path], spill: Path, *, whole_step: bool) -> None:
    """Take the statistics of the 25 expectations and, for the whole step, of profile and drift.

    The queries that one would write by hand, with ours' memory limit: one scan for whatever can
    share it.
    """
    settings = {"preserve_insertion_order": False, "temp_directory": str(spill)}
    connection = duckdb.connect(config={"memory_limit": "1GB", **settings})
    paths = ", ".join(f"'{path}'" for path in files)
    connection.execute(f"CREATE VIEW orders AS SELECT * FROM read_parquet([{paths}])")
    _suite(connection)
    if whole_step:
        edges = _profile(connection)
        _drift(connection, edges)
    connection.close()


def _suite(connection: duckdb.DuckDBPyConnection) -> None:
    ask = connection.execute
    ask("DESCRIBE orders").fetchall()
    ask(f"""
        SELECT count(*), count(customer), count(plan), count(temperature), count({LABEL}),
            count(*) FILTER (device NOT IN {tuple(DEVICES)}),
            count(*) FILTER (plan NOT IN {tuple(PLANS)}),
            count(*) FILTER ({LABEL} NOT IN (0, 1)),
            count(*) FILTER (price NOT BETWEEN 0 AND 1000),
            count(*) FILTER (discount NOT BETWEEN 0 AND 0.5),
            count(*) FILTER (age NOT BETWEEN 0 AND 120),
            count(*) FILTER (latitude NOT BETWEEN -90 AND 90),
            count(*) FILTER (NOT regexp_matches(code, '^AB-\\d{{4}}$')),
            count(*) FILTER (length(country) <> 3),
            avg({LABEL}), stddev_samp(weight), count(DISTINCT country),
            count(*) FILTER (shipped_at <= {TIME}),
            count(*) FILTER (discount > 0 AND price < 0)
        FROM orders""").fetchall()
    ask("SELECT median(amount) FROM orders").fetchall()
    ask("SELECT quantile_disc(temperature, [0.05, 0.5, 0.95]) FROM orders").fetchall()
    ask("SELECT DISTINCT country FROM orders").fetchall()
    for key in (KEY, f"customer, {TIME}"):
        ask(
            "SELECT sum(n) FROM (SELECT count(*) AS n FROM orders "
            f"GROUP BY {key} HAVING count(*) > 1)"
        ).fetchall()


def _profile(connection: duckdb.DuckDBPyConnection) -> dict[str, list[Any]]:
    """Describe each column; return the edges of a histogram of equal shares for each number."""
    shares = [i / EDGES for i in range(1, EDGES)]
    described = [f"count({c}), approx_count_distinct({c}), min({c}), max({c})" for c in (
        *NUMBERS, *CATEGORIES, *TIMES,
    )]  # fmt: skip
    numbers = [f"avg({c}), stddev_samp({c}), corr({c}, {LABEL})" for c in NUMBERS]
    quantiles = [f"approx_quantile({c}, {shares})" for c in NUMBERS]
    found = connection.execute(
        f"SELECT {', '.join([*quantiles, *described, *numbers])} FROM orders"
    ).fetchall()[0]
    for category in CATEGORIES:
        connection.execute(
            f"SELECT {category}, count(*) AS n, avg({LABEL}) FROM orders GROUP BY {category} "
            "ORDER BY n DESC LIMIT 200"
        ).fetchall()
    return dict(zip(NUMBERS, found, strict=False))


def _drift(connection: duckdb.DuckDBPyConnection, edges: dict[str, list[Any]]) -> None:
    counted = [f"histogram({c}, {sorted(set(edges[c]))}::DOUBLE[])" for c in NUMBERS]
    connection.execute(f"SELECT {', '.join(counted)} FROM orders").fetchall()
    for category in CATEGORIES:
        connection.execute(
            f"SELECT {category}, count(*) FROM orders GROUP BY {category}"
        ).fetchall()


def gx_on_pandas(files: Sequence[Path]) -> None:
    """Hold the suite against a data frame of all rows, as GX does it by itself; no more than that.

    Its SQL expectation is left out, which pandas cannot evaluate.
    """
    import great_expectations as gx
    import pandas as pd
    from great_expectations.data_context.types.base import ProgressBarsConfig

    rows = pd.concat([pd.read_parquet(path) for path in files], ignore_index=True)
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    asset = context.data_sources.add_pandas("memory").add_dataframe_asset("orders")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch(
        batch_parameters={"dataframe": rows}
    )
    content = suite()
    expectations = [e for e in content["expectations"] if e["type"].startswith("expect_")]
    result = batch.validate(
        gx.ExpectationSuite(name="orders", expectations=expectations), result_format="BASIC"
    )
    if not result.success:
        raise SystemExit("GX on pandas says that the rows fail the suite")
