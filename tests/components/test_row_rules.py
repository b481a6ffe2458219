"""Rows that break a rule are put aside, each with the rule's name; too many stop the run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from duckdb_rows import SETTINGS, write_objects

from components.common.data_settings import RowRule
from components.common.row_rules import Cut, cut, hold_to_budget, put_aside
from components.common.tables import LocalObject, add_view, columns_of, open_tables
from infra.folder import FolderStore
from training_core.errors import ConfigurationError, StoppedByGate

FIRST = pd.DataFrame(
    {
        "id": [1, 2, 3, 4],
        "price": [5.0, -1.0, np.inf, 7.0],
        "kind": ["apple", "bread", None, "fig"],
        "code": ["AB-1", "AB-22x", "AB-3", None],
        "flag": [True, False, None, True],
    }
)
SECOND = FIRST.assign(id=[5, 6, 7, 8], price=[-2.0, 1.0, 2.0, 3.0])


def rule(name: str, column: str, **what: Any) -> RowRule:
    return RowRule(name=name, column=column, **what)


class Rows:
    """Two objects in DuckDB, and a store."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
        self.connection, self.folder = connection, folder
        self.store = FolderStore(folder / "store")
        self.objects: list[LocalObject] = []

    def add(self, *parts: pd.DataFrame) -> None:
        self.objects = write_objects(self.folder, *parts)
        add_view(self.connection, "rows", self.objects)

    def ids(self, view: str) -> list[int]:
        found = self.connection.execute(f"SELECT id FROM {view} ORDER BY id").fetchall()
        return [row[0] for row in found]

    def aside(self, divided: Cut, budget: float = 1.0) -> str:
        key = put_aside(self.connection, self.store, divided=divided, objects=self.objects)
        hold_to_budget(divided, key, store=self.store, budget=budget)
        return key

    def stored(self, key: str) -> pd.DataFrame:
        file = self.folder / "stored.parquet"
        self.store.get_file(key, file)
        return pd.read_parquet(file)


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    with open_tables(SETTINGS, readable=[tmp_path], scratch=tmp_path / "scratch") as connection:
        yield Rows(connection, tmp_path)


@pytest.mark.parametrize(
    ("what", "bad"),
    [
        ({"column": "price", "minimum": 0}, [2, 5]),
        ({"column": "price", "minimum": -2.0}, []),
        ({"column": "price", "maximum": 5}, [3, 4]),
        ({"column": "price", "maximum": float("inf")}, []),
        ({"column": "id", "minimum": 2.5, "maximum": 6}, [1, 2, 7, 8]),
        ({"column": "id", "allowed": [1, 2, 3, 4, 5, 6, 7]}, [8]),
        ({"column": "price", "allowed": [5.0, -1, -2, 1, 2, 3]}, [3, 4]),
        ({"column": "kind", "allowed": ["apple", "it's"]}, [2, 4, 6, 8]),
        ({"column": "kind", "allowed": ["apple"], "required": True}, [2, 3, 4, 6, 7, 8]),
        ({"column": "kind", "required": True}, [3, 7]),
        ({"column": "code", "matches": r"AB-\d+"}, [2, 6]),
        ({"column": "code", "matches": r"AB"}, [1, 2, 3, 5, 6, 7]),
        ({"column": "flag", "allowed": [True]}, [2, 6]),
    ],
)
def test_a_rule_puts_aside_what_breaks_it_and_nulls_only_where_a_value_is_required(
    rows: Rows, what: dict[str, Any], bad: list[int]
) -> None:
    rows.add(FIRST, SECOND)
    divided = cut(rows.connection, "rows", [RowRule(name="it", **what)])
    assert (divided.rows, divided.broken) == (8, {"it": len(bad)} if bad else {})
    assert rows.ids("aside") == rows.ids("located_aside") == bad
    assert rows.ids("kept") == rows.ids("located_kept") == sorted({*range(1, 9)} - {*bad})


def test_a_row_counts_for_the_first_rule_that_it_breaks(rows: Rows) -> None:
    rows.add(FIRST)
    rules = [rule("fruit", "kind", allowed=["apple"]), rule("dear", "price", minimum=0, maximum=6)]
    divided = cut(rows.connection, "rows", rules)
    assert (divided.broken, divided.aside) == ({"fruit": 2, "dear": 1}, 3)
    found = rows.connection.execute("SELECT id, broken_rule FROM aside ORDER BY id").fetchall()
    assert found == [(2, "fruit"), (3, "dear"), (4, "fruit")]


def test_without_rules_all_rows_are_kept(rows: Rows) -> None:
    rows.add(FIRST)
    divided = cut(rows.connection, "rows", [])
    assert (divided.rows, divided.broken, rows.ids("kept"), rows.ids("aside")) == (
        4, {}, [1, 2, 3, 4], [],
    )  # fmt: skip
    assert columns_of(rows.connection, "kept") == columns_of(rows.connection, "rows")
    assert rows.aside(divided, budget=0) == ""


def test_nan_is_a_null(rows: Rows, tmp_path: Path) -> None:
    """DuckDB has it greater than any number and equal to itself."""
    path = tmp_path / "nan"
    numbers = pa.array([1.0, float("nan"), None, 4.0])
    narrow = pa.array([float("nan"), 1, 2, 3], type=pa.float32())
    pq.write_table(pa.table({"id": [1, 2, 3, 4], "price": numbers, "weight": narrow}), path)
    add_view(rows.connection, "rows", [LocalObject("nan", path, 4)])
    for number, (what, bad) in enumerate(
        [
            ({"minimum": 2, "maximum": 9}, [1]),
            ({"allowed": [1]}, [4]),
            ({"required": True}, [2, 3]),
        ]
    ):
        cut(rows.connection, "rows", [rule(f"r{number}", "price", **what)])
        assert rows.ids("aside") == bad
    cut(rows.connection, "rows", [])
    kept = rows.connection.execute("SELECT count(price), count(weight) FROM kept").fetchall()
    assert kept == [(2, 3)]
    assert columns_of(rows.connection, "kept")["weight"] == "FLOAT"


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ({"column": "gone", "minimum": 0}, ["'it'", "'gone'", "which the data lacks"]),
        ({"column": "kind", "minimum": 0}, ["'it'", "'kind' with numbers", "VARCHAR"]),
        ({"column": "flag", "maximum": 0}, ["'flag' with numbers", "BOOLEAN"]),
        ({"column": "kind", "allowed": [1, 2]}, ["'kind' with numbers", "VARCHAR"]),
        ({"column": "id", "allowed": ["1"]}, ["'id' with text", "BIGINT"]),
        ({"column": "id", "matches": "1"}, ["'id' with text", "BIGINT"]),
    ],
)
def test_a_column_that_cannot_be_checked_stops_the_run(
    rows: Rows, what: dict[str, Any], words: list[str]
) -> None:
    rows.add(FIRST)
    with pytest.raises(StoppedByGate) as error:
        cut(rows.connection, "rows", [RowRule(name="it", **what)])
    assert all(word in str(error.value) for word in words)
    assert error.value.hint


@pytest.mark.parametrize(
    "rules",
    [
        [rule("nothing", "id")],
        [rule("none", "id", allowed=[])],
        [rule("mixed", "id", allowed=[1, "a"])],
        [rule("pattern", "kind", matches="(")],
        [rule("same", "id", minimum=0), rule("same", "id", maximum=0)],
    ],
    ids=lambda rules: rules[0].name,
)
def test_a_rule_that_says_nothing_never_passes(rows: Rows, rules: list[RowRule]) -> None:
    rows.add(FIRST)
    with pytest.raises(ConfigurationError) as error:
        cut(rows.connection, "rows", rules)
    assert error.value.hint


def test_a_column_called_broken_rule_stops_the_run(rows: Rows) -> None:
    rows.add(FIRST.rename(columns={"code": "broken_rule"}))
    with pytest.raises(StoppedByGate, match="'broken_rule'"):
        cut(rows.connection, "rows", [])


def test_rows_put_aside_are_kept_with_where_they_were_and_why(rows: Rows) -> None:
    rows.add(FIRST, SECOND)
    divided = cut(rows.connection, "rows", [rule("negative", "price", minimum=0)])
    key = rows.aside(divided)
    kept = rows.stored(key)
    assert kept["_object"].tolist() == ["data/part-0.parquet", "data/part-1.parquet"]
    assert kept["_row"].tolist() == [1, 0]
    assert kept["broken_rule"].tolist() == ["negative", "negative"]
    expected = pd.concat([FIRST.iloc[[1]], SECOND.iloc[[0]]], ignore_index=True)
    pd.testing.assert_frame_equal(kept[list(FIRST)], expected, check_dtype=False)
    assert list((rows.folder / "scratch").rglob("*.parquet")) == []


def test_more_than_the_budget_stops_the_run_and_says_where_the_rows_are(rows: Rows) -> None:
    rows.add(FIRST, SECOND)
    rules = [rule("negative", "price", minimum=0), rule("fig", "kind", allowed=["apple", "bread"])]
    divided = cut(rows.connection, "rows", rules)
    assert divided.broken == {"negative": 2, "fig": 2}
    key = rows.aside(divided, budget=0.5)
    with pytest.raises(StoppedByGate) as error:
        rows.aside(divided, budget=0.49)
    assert "4 of 8 rows break row rules, more than the budget of 49.00%" in str(error.value)
    assert "most often: negative, 2 times" in str(error.value)
    assert key in str(error.value.hint)
    assert len(rows.stored(key)) == 4


def test_the_same_rows_make_the_same_file_whatever_the_threads_do(tmp_path: Path) -> None:
    """Enough of them for several row groups, and objects in another order."""
    count = 300_000
    part = pd.DataFrame({"id": np.arange(count), "price": np.arange(count) % 10 - 5.0})
    hashes = set()
    for attempt in range(3):
        with open_tables(
            SETTINGS, readable=[tmp_path], scratch=tmp_path / f"scratch-{attempt}"
        ) as connection:
            rows = Rows(connection, tmp_path)
            rows.objects = write_objects(tmp_path, part, part.assign(id=part["id"] + count))
            if attempt:
                rows.objects.reverse()
            add_view(connection, "rows", rows.objects)
            divided = cut(connection, "rows", [rule("negative", "price", minimum=0)])
            assert divided.broken == {"negative": count}
            hashes.add(rows.aside(divided))
    assert len(hashes) == 1
