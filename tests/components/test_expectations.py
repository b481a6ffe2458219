"""A suite in JSON: what it sees, what is the data's fault, and what is its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from duckdb_rows import rows_in_duckdb

from components.common.data_figures import Expectation
from components.validate_data.data_docs import data_docs_page
from components.validate_data.expectations import validate
from training_core.errors import ConfigurationError

ROWS = pd.DataFrame(
    {
        "id": range(100),
        "number": [None if i < 10 else i / 10 for i in range(100)],
        "text": [str(i) for i in range(100)],
        "kind": ["apple", "bread"] * 50,
        "when": pd.date_range("2025-01-01", periods=100, tz="UTC"),
        "flag": [True, False] * 50,
    }
)
Check = Callable[..., list[Expectation]]


def expect(kind: str, severity: str = "critical", **arguments: Any) -> dict[str, Any]:
    return {"type": f"expect_{kind}", "kwargs": arguments, "meta": {}, "severity": severity}


def sql(query: str) -> dict[str, Any]:
    return {"type": "unexpected_rows_expectation", "kwargs": {"unexpected_rows_query": query}}


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Write a suite, hold the rows against it."""

    def run(
        *expectations: dict[str, Any], rows: pd.DataFrame = ROWS, **given: Any
    ) -> list[Expectation]:
        file = tmp_path / "suite.json"
        file.write_text(json.dumps({"name": "s", "expectations": expectations, "meta": {}}))
        with rows_in_duckdb(tmp_path, rows) as connection:
            return validate(connection, "rows", file, parameters=given)

    return run


def test_results_come_in_the_order_of_the_suite_with_what_was_seen(check: Check) -> None:
    seen = check(
        expect("column_values_to_be_in_set", "warning", column="kind", value_set=["apple"]),
        expect("table_row_count_to_be_between", min_value=1, max_value=1000),
        expect("column_values_to_not_be_null", column="number", mostly=0.95),
        expect("column_pair_values_a_to_be_greater_than_b", column_A="number", column_B="id"),
        expect("compound_columns_to_be_unique", column_list=["kind", "flag"]),
        sql("SELECT * FROM {batch} WHERE id > 97"),
    )
    assert [(e.name, e.column, e.severity, e.success) for e in seen] == [
        ("column_values_to_be_in_set", "kind", "warning", False),
        ("table_row_count_to_be_between", "", "critical", True),
        ("column_values_to_not_be_null", "number", "critical", False),
        ("column_pair_values_a_to_be_greater_than_b", "number, id", "critical", False),
        ("compound_columns_to_be_unique", "", "critical", False),
        ("unexpected_rows_expectation", "", "critical", False),
    ]
    assert seen[0].observed == "50 of 100 unexpected (50%), for example bread"
    assert seen[1].observed == "100"
    assert seen[2].observed == "10 of 100 unexpected (10%)"
    assert seen[2].expected == "mostly 0.95"
    assert seen[5].observed == "2"


def test_what_is_seen_is_short(check: Check) -> None:
    rows = pd.DataFrame({"text": ["x" * 500, "y" * 500, "z" * 500, "w" * 500]})
    (seen,) = check(expect("column_value_lengths_to_equal", column="text", value=3), rows=rows)
    assert len(seen.observed) == 200
    assert seen.observed.startswith("4 of 4 unexpected (100%), for example wwww")


def test_columns_that_differ_are_named(check: Check) -> None:
    wanted = [*ROWS.columns, "gone"]
    (seen,) = check(expect("table_columns_to_match_set", column_set=wanted),
                    rows=ROWS.rename(columns={"kind": "sort"}))  # fmt: skip
    assert not seen.success
    assert seen.observed == "missing: gone, kind; unexpected: sort"
    assert "gone" in seen.expected


def test_parameters_are_filled_in(check: Check) -> None:
    fresh = expect("column_max_to_be_between", column="when", min_value={"$PARAMETER": "after"})
    (old,) = check(fresh, after="2026-01-01T00:00:00+00:00")
    (new,) = check(fresh, after="2025-02-01T00:00:00+00:00")
    assert (old.success, new.success) == (False, True)
    assert old.observed.startswith("2025-04-10")


DATA_AT_FAULT = [
    (expect("column_values_to_not_be_null", column="gone"), "no column 'gone' in the data"),
    (expect("column_values_to_be_unique", column="gone"), "no column 'gone' in the data"),
    (expect("column_mean_to_be_between", column="gone", min_value=0), "no column 'gone'"),
    (expect("compound_columns_to_be_unique", column_list=["id", "gone"]), "no column 'gone'"),
    (expect("column_pair_values_to_be_equal", column_A="gone", column_B="id"), "no column 'gone'"),
    (expect("column_mean_to_be_between", column="text", min_value=0), "'text' is VARCHAR, not a n"),
    (expect("column_median_to_be_between", column="text", min_value=0), "'text' is VARCHAR"),
    (expect("column_quantile_values_to_be_between", column="flag",
            quantile_ranges={"quantiles": [0.5], "value_ranges": [[0, 1]]}), "'flag' is BOOLEAN"),
    (expect("column_values_to_be_between", column="text", min_value=0), "'text' is VARCHAR"),
    (expect("column_values_to_be_between", column="when", min_value=0), "'when' is TIMESTAMP"),
    (expect("column_values_to_be_between", column="number", min_value="2025-01-01T00:00:00"),
     "'number' is DOUBLE, not a time"),
    (expect("column_max_to_be_between", column="text", max_value=200), "'text' is VARCHAR"),
    (expect("column_values_to_be_in_set", column="text", value_set=[1, 2]), "'text' is VARCHAR"),
    (expect("column_values_to_be_in_set", column="id", value_set=["1"]), "'id' is BIGINT, not te"),
    (expect("column_distinct_values_to_be_in_set", column="text", value_set=[1]), "is VARCHAR"),
    (expect("column_values_to_match_regex", column="id", regex="^1"), "'id' is BIGINT, not text"),
    (expect("column_value_lengths_to_equal", column="id", value=1), "'id' is BIGINT, not text"),
    (expect("column_pair_values_a_to_be_greater_than_b", column_A="text", column_B="id"),
     "cannot be compared with BIGINT"),
    (expect("multicolumn_sum_to_equal", column_list=["id", "text"], sum_total=1), "'text' is VARC"),
]  # fmt: skip


@pytest.mark.parametrize(("expectation", "words"), DATA_AT_FAULT)
def test_a_column_that_is_absent_or_of_another_type_is_the_datas_fault(
    check: Check, expectation: dict[str, Any], words: str
) -> None:
    """Text that could be read as numbers, too: DuckDB would read it, and all would be well."""
    (seen,) = check(expectation)
    assert (seen.success, seen.severity) == (False, "critical")
    assert words in seen.observed


def test_the_rest_of_the_suite_is_evaluated_all_the_same(check: Check) -> None:
    absent, fine = check(
        expect("column_mean_to_be_between", column="gone", min_value=0),
        expect("column_mean_to_be_between", column="id", min_value=0),
    )
    assert (absent.success, fine.success, fine.observed) == (False, True, "49.5")


def test_values_that_can_be_compared_are(check: Check) -> None:
    seen = check(
        expect("column_values_to_be_in_set", column="flag", value_set=[True, False]),
        expect("column_values_to_be_in_set", column="flag", value_set=[0, 1]),
        expect("column_values_to_be_in_set", column="id", value_set=[float(i) for i in range(100)]),
        expect("column_values_to_be_between", column="id", min_value=0.0, max_value=1e9),
        expect("column_values_to_be_between", column="when", min_value="2025-01-01"),
        expect("column_to_exist", column="when"),
    )
    assert [e.success for e in seen] == [True] * 6


def test_an_absent_column_can_be_what_is_expected_to_exist(check: Check) -> None:
    (seen,) = check(expect("column_to_exist", column="gone"))
    assert not seen.success


SUITE_AT_FAULT = [
    (expect("column_values_to_match_regex", column="text", regex="(unclosed"), "missing )"),
    (expect("column_values_to_match_regex", column="text", regex="(?=look)a"), "invalid perl"),
    (sql("SELECT nothing FROM {batch}"), '"nothing" not found'),
    (sql("SELECT FROM WHERE {batch}"), "syntax error"),
    (sql("SELECT * FROM {batch} JOIN read_parquet('/etc/passwd') USING (id)"), "Permission"),
    (expect("column_values_to_be_of_type", column="id", type_="int64x"), "'int64x'"),
    (expect("column_values_to_be_in_type_list", column="id", type_list=["BIGINT", "float64"]),
     "'float64'"),
    (expect("column_values_to_be_fabulous", column="id"), "fabulous"),
    (expect("column_mean_to_be_between", column="id", minimum=3), "minimum"),
    (expect("column_values_to_be_between", column="id", min_value=3, max_value=1), "min_value"),
    (expect("column_max_to_be_between", column="when", min_value={"$PARAMETER": "never"}), "never"),
    (expect("column_values_to_be_increasing", column="id"), "increasing"),
]  # fmt: skip


@pytest.mark.parametrize(("expectation", "words"), SUITE_AT_FAULT)
def test_what_cannot_be_evaluated_is_the_suites_fault(
    check: Check, expectation: dict[str, Any], words: str
) -> None:
    fine = expect("column_mean_to_be_between", column="id", min_value=0)
    with pytest.raises(ConfigurationError) as error:
        check(fine, expectation)
    assert "suite.json" in str(error.value)
    assert words in str(error.value)
    assert error.value.hint


def test_sql_about_a_column_that_is_said_to_be_gone_follows_from_that(check: Check) -> None:
    query = sql("SELECT * FROM {batch} WHERE gone > 1")
    matched = expect("table_columns_to_match_set", column_set=["id", "gone"], exact_match=False)
    told, follows = check(matched, query)
    assert (told.success, follows.success) == (False, False)
    assert follows.observed == "not evaluated, because the columns are not the expected ones"


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"name": "s"}', '{"expectations": [3]}', '{"expectations": [{}]}', None]
)
def test_what_is_no_suite_is_said_to_be_none(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "suite.json"
    if content is not None:
        file.write_text(content)
    with (
        rows_in_duckdb(tmp_path, ROWS) as connection,
        pytest.raises(ConfigurationError, match=r"suite\.json"),
    ):
        validate(connection, "rows", file)


def test_a_suite_of_nothing_sees_nothing(check: Check) -> None:
    assert check() == []


def test_an_expectation_that_is_there_twice_is_seen_twice(check: Check) -> None:
    twice = expect("column_mean_to_be_between", column="id", min_value=0)
    assert [e.success for e in check(twice, twice)] == [True, True]


def test_data_docs_are_one_page_that_hides_nothing(check: Check) -> None:
    page = data_docs_page(check(
        expect("column_values_to_be_in_set", "warning", column="kind", value_set=["<b>"]),
        expect("column_mean_to_be_between", column="id", min_value=0),
    ))  # fmt: skip
    assert "<h1>Failed: 2 expectations</h1>" in page
    assert page.index("✗") < page.index("✓")
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    assert "http" not in page
