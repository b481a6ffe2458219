"""What the DuckDB engine asks of the rows, where it differs from Great Expectations' own SQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import great_expectations as gx
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import sqlalchemy
from duckdb_rows import rows_in_duckdb

from components.validate_data import duckdb_metrics
from components.validate_data.duckdb_engine import batch_of, canonical_type

ROWS = pd.DataFrame(
    {
        "id": [1, 2, 3, 4, 5, 6],
        "number": [0.5, 1.5, 2.5, 3.5, 4.5, 99.0],
        "kind": ["a", "b", "a", "b", "ab", None],
        "when": pd.date_range("2025-01-01", periods=6, tz="UTC"),
        "first": [1, 1, 2, 2, 3, 3],
        "second": ["x", "y", "x", None, None, None],
    }
)


@contextmanager
def batch(folder: Path, rows: pd.DataFrame = ROWS) -> Iterator[Any]:
    with rows_in_duckdb(folder, rows) as connection, batch_of(connection, "rows") as opened:
        yield opened


def result(opened: Any, kind: str, **arguments: Any) -> Any:
    suite = gx.ExpectationSuite(name="one", expectations=[{"type": kind, "kwargs": arguments}])
    form = {"result_format": "BASIC", "partial_unexpected_count": 3}
    found = opened.validate(suite, result_format=form).results[0]
    assert "True" not in str(found.exception_info), found.exception_info
    return found


def test_types_are_duckdbs_whatever_they_are_called(tmp_path: Path) -> None:
    with batch(tmp_path) as opened:
        kind = "expect_column_values_to_be_of_type"
        for name in ("BIGINT", "int8", "long"):
            assert result(opened, kind, column="id", type_=name).success
        assert not result(opened, kind, column="id", type_="DOUBLE").success
        seen = result(opened, kind, column="when", type_="TIMESTAMP")
        assert (seen.success, seen.result["observed_value"]) == (False, "TIMESTAMP WITH TIME ZONE")
        kind = "expect_column_values_to_be_in_type_list"
        assert result(opened, kind, column="number", type_list=["FLOAT", "DOUBLE"]).success
        assert not result(opened, kind, column="number", type_list=["VARCHAR", "int"]).success


def test_a_type_that_is_none_is_known_as_such() -> None:
    with duckdb.connect() as connection:
        assert canonical_type(connection, "decimal(10, 2)") == "DECIMAL(10,2)"
        assert canonical_type(connection, "float64") is None
        assert canonical_type(connection, "RedshiftDialect") is None


def test_sql_sees_the_batch_and_the_files_that_may_be_read(tmp_path: Path) -> None:
    kind, allowed = "unexpected_rows_expectation", tmp_path / "old.parquet"
    ROWS.head(2).to_parquet(allowed, index=False)
    elsewhere = tmp_path.parent / "elsewhere.parquet"
    ROWS.to_parquet(elsewhere, index=False)
    query = "SELECT id FROM {{batch}} SEMI JOIN read_parquet('{}') USING (id)"
    with batch(tmp_path) as opened:
        sql = "SELECT * FROM {batch} WHERE number > 50"
        assert result(opened, kind, unexpected_rows_query=sql).result["observed_value"] == 1
        assert result(opened, kind, unexpected_rows_query=f"{sql} AND id = 1").success
        seen = result(opened, kind, unexpected_rows_query=query.format(allowed))
        assert seen.result["observed_value"] == 2
        suite = gx.ExpectationSuite(name="one", expectations=[
            {"type": kind, "kwargs": {"unexpected_rows_query": query.format(elsewhere)}},
        ])  # fmt: skip
        assert "Permission Error" in str(opened.validate(suite).results[0].exception_info)


def test_a_regular_expression_is_searched_for(tmp_path: Path) -> None:
    with batch(tmp_path) as opened:
        kind = "expect_column_values_to_match_regex"
        assert result(opened, kind, column="kind", regex="b$").result["unexpected_count"] == 2
        assert result(opened, kind, column="kind", regex="^b$").result["unexpected_count"] == 3


def test_nulls_together_are_no_key(tmp_path: Path) -> None:
    """Great Expectations joins on equality, which loses them: a key with a null was never found."""
    with batch(tmp_path) as opened:
        kind = "expect_compound_columns_to_be_unique"
        seen = result(opened, kind, column_list=["first", "second"])
        assert (seen.success, seen.result["unexpected_count"]) == (False, 2)
        assert seen.result["partial_unexpected_list"] == [{"first": 3, "second": None}]
        assert result(opened, kind, column_list=["id", "second"]).success


def test_a_condition_on_rows_holds_for_the_metrics_that_are_ours(tmp_path: Path) -> None:
    only = {"row_condition": 'col("number") < 50', "condition_parser": "great_expectations"}
    with batch(tmp_path) as opened:
        seen = result(opened, "expect_column_median_to_be_between", column="number", **only,
                      min_value=2.5, max_value=2.5)  # fmt: skip
        assert seen.success
        unique = "expect_column_values_to_be_unique"
        assert result(opened, unique, column="first", **only).result["unexpected_count"] == 4


def test_examples_are_the_same_each_time_and_none_comes_twice(tmp_path: Path) -> None:
    rows = pd.DataFrame({"id": np.arange(400_000), "kind": np.arange(400_000) * 5 % 7 + 1})
    with batch(tmp_path, rows) as opened:
        for kind in ("in_set", "between"):
            chosen = {"value_set": [7]} if kind == "in_set" else {"min_value": 7}
            seen = result(opened, f"expect_column_values_to_be_{kind}", column="kind", **chosen)
            assert seen.result["partial_unexpected_list"] == [1, 2, 3]


def test_times_with_a_zone_can_be_shown(tmp_path: Path) -> None:
    with batch(tmp_path) as opened:
        seen = result(opened, "expect_column_values_to_be_between", column="when",
                      min_value="2025-01-03T00:00:00+00:00")  # fmt: skip
        assert seen.result["unexpected_count"] == 2
        assert str(seen.result["partial_unexpected_list"][0]) == "2025-01-01 00:00:00+00:00"


_RANDOM = np.random.default_rng(3)
VALUES = {
    "smooth": _RANDOM.lognormal(0, 3, 300_000),
    "ties": _RANDOM.integers(0, 4, 300_000),
    "half of it zero": np.maximum(0, _RANDOM.normal(0, 1, 300_000)),
    "outliers": np.r_[np.full(300_000, 7.0), 1e300, -1e300],
    "few": np.array([3.0, 1.0, 2.0]),
    "one": np.array([4]),
}
SHARES = [0.0, 0.001, 0.25, 0.5, 0.51, 0.999, 1.0]


@pytest.mark.parametrize(
    ("held", "deviations"),
    [(10**6, 6), (0, 6), (0, 0)],
    ids=["of all values", "bracketed", "missed"],
)
@pytest.mark.parametrize("name", VALUES)
def test_quantiles_are_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, held: int, deviations: int
) -> None:
    """Also of more rows than are held, and where the sample does not say where they are."""
    monkeypatch.setattr(duckdb_metrics, "_HELD", held)
    monkeypatch.setattr(duckdb_metrics, "_DEVIATIONS", deviations)
    values: npt.NDArray[Any] = VALUES[name]
    with batch(tmp_path, pd.DataFrame({"number": values})) as opened:
        ranges = {"quantiles": SHARES, "value_ranges": [[None, None]] * len(SHARES)}
        kind = "expect_column_quantile_values_to_be_between"
        seen = result(opened, kind, column="number", quantile_ranges=ranges)
        expected = np.quantile(values, SHARES, method="inverted_cdf")
        assert seen.result["observed_value"]["values"] == expected.tolist()
        seen = result(opened, "expect_column_median_to_be_between", column="number", min_value=-1)
        assert seen.result["observed_value"] == float(np.median(values))


def test_a_column_without_values_has_no_quantiles(tmp_path: Path) -> None:
    with batch(tmp_path, pd.DataFrame({"number": [np.nan, np.nan]})) as opened:
        seen = result(opened, "expect_column_median_to_be_between", column="number", min_value=0)
        assert (seen.success, seen.result["observed_value"]) == (False, None)


def test_counts_share_a_scan_and_nothing_is_looked_for_that_is_not_there(tmp_path: Path) -> None:
    suite = gx.ExpectationSuite(name="many", expectations=[
        *({"type": "expect_column_values_to_not_be_null", "kwargs": {"column": name}}
          for name in ("id", "number", "when")),
        {"type": "expect_column_values_to_be_between", "kwargs": {"column": "id", "min_value": 0}},
        {"type": "expect_column_values_to_be_in_set",
         "kwargs": {"column": "first", "value_set": [1, 2, 3]}},
        {"type": "expect_column_value_lengths_to_be_between",
         "kwargs": {"column": "kind", "min_value": 1}},
        {"type": "expect_column_mean_to_be_between", "kwargs": {"column": "number"}},
        {"type": "expect_column_max_to_be_between", "kwargs": {"column": "when"}},
    ])  # fmt: skip
    asked: list[str] = []
    with batch(tmp_path) as opened:
        engine = opened.datasource.get_engine()
        sqlalchemy.event.listen(
            engine, "before_cursor_execute", lambda c, k, statement, *_: asked.append(statement)
        )
        opened.validate(suite, result_format="BASIC")
    schema, rows, counts = asked
    assert (schema, rows.split()[1]) == ('DESCRIBE "rows"', "count(*)")
    assert counts.count(" AS ") >= 10, "what is counted of all columns is one query"


def test_the_connection_is_left_as_it_was(tmp_path: Path) -> None:
    with rows_in_duckdb(tmp_path, ROWS) as connection:
        before = connection.execute("SELECT * FROM duckdb_views() WHERE NOT internal").fetchall()
        with batch_of(connection, "rows") as opened:
            result(opened, "expect_column_mean_to_be_between", column="number", min_value=0)
        after = connection.execute("SELECT * FROM duckdb_views() WHERE NOT internal").fetchall()
        assert after == before
        assert connection.execute("SELECT * FROM duckdb_tables()").fetchall() == []
        with pytest.raises(duckdb.InvalidInputException, match="locked"):
            connection.execute("SET threads = 1")
