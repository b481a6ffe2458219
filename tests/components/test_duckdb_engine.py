"""Great Expectations on DuckDB says what it says on pandas: every kind, on good and on bad rows.

It leans on parts of Great Expectations that are not promised to stay: when an upgrade changes one
of them, these tests fail. Two differences are meant, and tested as such:
- A quantile is the smallest value that this share of the values does not exceed; on pandas it is
  the nearest one. In the tail of these rows neighbours differ by up to 0.02.
- A regular expression is searched for in the text; pandas anchors it at the beginning.
  (test_duckdb_queries.py)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import great_expectations as gx
import numpy as np
import pandas as pd
import pytest
from duckdb_rows import rows_in_duckdb
from great_expectations.data_context.types.base import ProgressBarsConfig

from components.validate_data.duckdb_engine import batch_of

ROWS = 4000


def good_rows() -> pd.DataFrame:
    random = np.random.default_rng(0)
    number = np.round(random.normal(10, 2, ROWS), 3)
    return pd.DataFrame(
        {
            "id": np.arange(ROWS, dtype=np.int64),
            "rare": np.where(np.arange(ROWS) % 4 == 1, np.nan, np.arange(ROWS)),
            "day": np.repeat(np.arange(ROWS // 4), 4),
            "hour": np.tile(np.arange(4), ROWS // 4),
            "number": np.where(np.arange(ROWS) % 50 == 7, np.nan, number),
            "more": number + 1,
            "same": number + 1,
            "kind": random.choice(["apple", "bread", "cheese", "apple"], ROWS),
            "code": [f"AB-{i % 97:04}" for i in range(ROWS)],
            "when": pd.Timestamp("2025-01-01") + pd.to_timedelta(np.arange(ROWS), unit="min"),
            "whole": np.arange(ROWS) % 7,
            "left": np.full(ROWS, 3),
            "right": np.full(ROWS, 4),
            "never": np.full(ROWS, np.nan),
            "spare": np.full(ROWS, "text"),
        }
    )


def bad_rows() -> pd.DataFrame:
    rows = good_rows().drop(columns="spare").assign(extra=1.5, further=2.5)
    at = rows.index
    rows["id"] = rows["id"].where(at % 40 > 1, 5)
    rows["rare"] = rows["rare"].mask(at % 100 == 4, 8.0)
    rows["hour"] = rows["hour"].where(at % 100 > 0, 1)
    rows["number"] = rows["number"].where(at % 3 > 0).mask(at % 31 == 1, 900.0)
    rows["more"] = rows["more"].where(at % 11 > 0, -5.0).mask(at == 5, 2000.0)
    rows["same"] = rows["same"].where(at % 9 > 0, 0.5)
    rows["kind"] = rows["kind"].mask(at % 2 == 0, "dates").where(at % 21 > 0, "fig")
    rows["code"] = rows["code"].mask(at % 10 == 3, "x1")
    rows["when"] = rows["when"].mask(at == 79, pd.Timestamp("2031-05-05"))
    rows["when"] = rows["when"].mask(at == 80, pd.Timestamp("2001-05-05"))
    rows["whole"] = rows["whole"].mask(at % 13 == 0, 99).mask(at % 13 == 1, 98)
    rows["left"] = rows["left"].mask(at % 3 == 0, rows["whole"])
    rows["never"] = 1.0
    return rows[rows["whole"] != 0]


COLUMNS = list(good_rows())


def expect(kind: str, **arguments: Any) -> dict[str, Any]:
    return {"type": f"expect_{kind}", "kwargs": arguments}


# Every one holds for the good rows and fails for the bad ones.
GALLERY = [
    expect("table_columns_to_match_set", column_set=COLUMNS),
    expect("table_columns_to_match_ordered_list", column_list=COLUMNS),
    expect("table_column_count_to_be_between", min_value=15, max_value=15),
    expect("table_column_count_to_equal", value=15),
    expect("table_row_count_to_be_between", min_value=ROWS, max_value=2 * ROWS),
    expect("table_row_count_to_equal", value=ROWS),
    expect("column_to_exist", column="spare"),
    expect("column_values_to_not_be_null", column="number", mostly=0.95),
    expect("column_values_to_be_null", column="never"),
    expect("column_values_to_be_in_set", column="kind", value_set=["apple", "bread", "cheese"]),
    expect("column_values_to_be_in_set", column="whole", value_set=list(range(7)), mostly=0.95),
    expect("column_values_to_not_be_in_set", column="kind", value_set=["fig", "grape"]),
    expect("column_values_to_be_between", column="number", min_value=0, max_value=20, mostly=0.99),
    expect("column_values_to_be_between", column="more", min_value=0, strict_min=True),
    expect("column_values_to_be_between", column="when",
           min_value="2025-01-01T00:00:00", max_value="2026-01-01T12:00:00"),
    expect("column_values_to_be_unique", column="id"),
    expect("column_values_to_be_unique", column="rare"),
    expect("compound_columns_to_be_unique", column_list=["day", "hour"]),
    expect("select_column_values_to_be_unique_within_record", column_list=["left", "whole"],
           mostly=0.8),
    expect("column_mean_to_be_between", column="number", min_value=9, max_value=11),
    expect("column_median_to_be_between", column="whole", min_value=2, max_value=3),
    expect("column_median_to_be_between", column="more", min_value=10.9, max_value=11.1),
    expect("column_stdev_to_be_between", column="number", min_value=1.8, max_value=2.2),
    expect("column_min_to_be_between", column="more", min_value=0),
    expect("column_min_to_be_between", column="when", min_value="2024-01-01T00:00:00",
           max_value="2025-01-01T00:00:00"),
    expect("column_max_to_be_between", column="whole", max_value=6),
    expect("column_max_to_be_between", column="when", max_value="2026-01-01T12:00:00"),
    expect("column_sum_to_be_between", column="whole", max_value=12_000),
    expect("column_quantile_values_to_be_between", column="number",
           quantile_ranges={"quantiles": [0.05, 0.5, 0.99],
                            "value_ranges": [[6, 7], [9.9, 10.1], [14, 16]]}),
    expect("column_quantile_values_to_be_between", column="whole",
           quantile_ranges={"quantiles": [0.0, 0.2, 1.0],
                            "value_ranges": [[0, 0], [1, 1], [6, 6]]}),
    expect("column_value_lengths_to_equal", column="code", value=7),
    expect("column_value_lengths_to_be_between", column="kind", min_value=4, max_value=6),
    expect("column_values_to_match_regex", column="code", regex=r"^AB-\d{4}$"),
    expect("column_values_to_not_match_regex", column="code", regex="x"),
    expect("column_values_to_match_regex_list", column="code", regex_list=["^AB", "^CD"]),
    expect("column_values_to_not_match_regex_list", column="code", regex_list=["^x", "^y"]),
    expect("column_distinct_values_to_be_in_set", column="kind",
           value_set=["apple", "bread", "cheese"]),
    expect("column_distinct_values_to_equal_set", column="kind",
           value_set=["apple", "bread", "cheese"]),
    expect("column_distinct_values_to_contain_set", column="whole", value_set=[0, 6]),
    expect("column_most_common_value_to_be_in_set", column="kind", value_set=["apple"]),
    expect("column_unique_value_count_to_be_between", column="whole", max_value=7),
    expect("column_proportion_of_unique_values_to_be_between", column="id", min_value=1.0),
    expect("column_proportion_of_non_null_values_to_be_between", column="number", min_value=0.9),
    expect("column_pair_values_a_to_be_greater_than_b", column_A="more", column_B="whole",
           or_equal=True, mostly=0.95),
    expect("column_pair_values_to_be_equal", column_A="more", column_B="same"),
    expect("column_pair_values_to_be_in_set", column_A="left", column_B="hour",
           value_pairs_set=[[3, 0], [3, 1], [3, 2], [3, 3]]),
    expect("multicolumn_sum_to_equal", column_list=["left", "right"], sum_total=7),
    expect("column_value_z_scores_to_be_less_than", column="more", threshold=4.2,
           double_sided=True),
]  # fmt: skip
# Great Expectations has no SQL for `column_values_to_be_increasing` and `_decreasing` (rows have no
# order), `to_be_dateutil_parseable`, `to_be_json_parseable`, `to_match_json_schema` and
# `to_match_strftime_format`; types are DuckDB's and SQL is none of pandas': test_duckdb_queries.py.


@pytest.fixture(scope="module", params=["good", "bad"])
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[bool, list[dict[str, Any]], list[dict[str, Any]]]]:
    """Are the rows good, and the results of the gallery on DuckDB and on pandas."""
    rows = good_rows() if request.param == "good" else bad_rows()
    folder = tmp_path_factory.mktemp("rows")
    with (
        rows_in_duckdb(folder, rows) as connection,
        batch_of(connection, "rows") as batch,
    ):
        yield request.param == "good", run(batch), run(pandas_batch(rows))


def pandas_batch(rows: pd.DataFrame) -> Any:
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    asset = context.data_sources.add_pandas("memory").add_dataframe_asset("rows")
    definition = asset.add_batch_definition_whole_dataframe("all")
    return definition.get_batch(batch_parameters={"dataframe": rows})


def run(batch: Any, expectations: list[dict[str, Any]] = GALLERY) -> list[dict[str, Any]]:
    """Evaluate expectations; return the results in their order."""
    numbered = [e | {"id": str(i)} for i, e in enumerate(expectations)]
    suite = gx.ExpectationSuite(name="gallery", expectations=numbered)
    form = {"result_format": "BASIC", "partial_unexpected_count": 3}
    found = {r.expectation_config.id: r for r in batch.validate(suite, result_format=form).results}
    return [found[e["id"]] for e in numbered]


def test_the_gallery_has_most_kinds() -> None:
    assert len({e["type"] for e in GALLERY}) >= 40


@pytest.mark.parametrize("number", range(len(GALLERY)), ids=lambda i: GALLERY[i]["type"][7:])
def test_an_expectation_says_the_same_as_on_pandas(
    pair: tuple[bool, list[dict[str, Any]], list[dict[str, Any]]], number: int
) -> None:
    good, ours, theirs = pair
    mine, reference = ours[number], theirs[number]
    assert "True" not in str(mine.exception_info), mine.exception_info
    assert (bool(mine.success), bool(reference.success)) == (good, good)
    for name in ("element_count", "unexpected_count", "missing_count", "unexpected_percent"):
        assert mine.result.get(name) == reference.result.get(name)
    same_observed(mine.result.get("observed_value"), reference.result.get("observed_value"))


def same_observed(mine: Any, reference: Any) -> None:
    if reference is None or isinstance(reference, (str, pd.Timestamp)):
        assert mine == reference
    elif isinstance(reference, dict):  # of quantiles, which may be the next value; see above
        assert mine["quantiles"] == reference["quantiles"]
        assert mine["values"] == pytest.approx(reference["values"], abs=0.03)
    elif isinstance(reference, list):
        assert sorted(map(str, mine)) == sorted(map(str, reference))
    else:
        assert mine == pytest.approx(reference, rel=1e-9)
