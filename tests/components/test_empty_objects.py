"""Objects without rows are said; a snapshot without any row is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from components.common.data_settings import ValidationSettings
from components.common.records import StepRecord
from components.common.tables import LocalObject
from components.validate_data.objects import find_empty_objects
from tests.small_project.command import make_project
from tests.small_project.data_steps import run_data_steps
from tests.small_project.make_data import file_of, month

AS_CSV = ('data.pattern="*.csv"',)


def deliver(project: Path, number: int, rows: pd.DataFrame, *, text: bool) -> str:
    """Write a month as Parquet or as CSV; return its key."""
    path = file_of(project / "data", number)
    path.parent.mkdir(exist_ok=True)
    if text:
        path = path.with_suffix(".csv")
        rows.to_csv(path, index=False)
    else:
        rows.to_parquet(path, index=False)
    return path.name


def findings(record: StepRecord) -> list[dict[str, Any]]:
    return [f for f in record.figures["findings"] if f["check"] == "empty_object"]


@pytest.mark.parametrize("text", [False, True], ids=["parquet", "csv"])
def test_an_object_without_rows_is_named_and_the_run_goes_on(tmp_path: Path, text: bool) -> None:
    project = make_project(tmp_path / "project")
    deliver(project, 1, month(1), text=text)
    empty = deliver(project, 2, month(2).iloc[:0], text=text)
    records = run_data_steps(project, *(AS_CSV if text else ()))
    assert [r.status for r in records.values()] == ["done"] * 3
    (found,) = findings(records["validate_data"])
    assert (found["level"], found["measured"]) == ("warn", 1.0)
    assert found["message"] == f"1 of 2 objects has no rows: {empty}"
    assert records["validate_data"].figures["rows"] == len(month(1))


def test_many_objects_without_rows_are_counted_and_the_last_ones_named() -> None:
    objects = [LocalObject(f"{number}.parquet", Path("x"), int(number < 2)) for number in range(6)]
    (found,) = find_empty_objects(objects, ValidationSettings())
    assert found.message == (
        "4 of 6 objects have no rows: among them 3.parquet, 4.parquet, 5.parquet"
    )
    assert find_empty_objects(objects[:2], ValidationSettings()) == []


def test_the_level_of_objects_without_rows_is_obeyed() -> None:
    objects = [LocalObject("1.parquet", Path("x"), 0), LocalObject("2.parquet", Path("x"), 9)]
    (found,) = find_empty_objects(objects, ValidationSettings(levels={"empty_object": "block"}))
    assert found.level == "block"
    assert find_empty_objects(objects, ValidationSettings(levels={"empty_object": "off"})) == []


@pytest.mark.parametrize("text", [False, True], ids=["parquet", "csv"])
def test_a_snapshot_without_rows_is_refused_whatever_its_suite(tmp_path: Path, text: bool) -> None:
    project = make_project(tmp_path / "project")
    none = {"name": "none", "expectations": [], "meta": {}}
    (project / "expectations.json").write_text(json.dumps(none))
    empty = deliver(project, 1, month(1).iloc[:0], text=text)
    last = list(run_data_steps(project, *(AS_CSV if text else ())).values())[-1]
    assert (last.step, last.status, last.exit_code) == ("validate_data", "stopped", 1)
    assert last.reason == "the snapshot has no rows"
    assert findings(last)[0]["message"] == f"1 of 1 objects has no rows: {empty}"


def test_a_snapshot_whose_rows_were_all_put_aside_is_refused(tmp_path: Path) -> None:
    rules = "validation.row_rules=[{name: never, column: number, minimum: 1000}]"
    project = make_project(tmp_path / "project", 1)
    last = list(run_data_steps(project, rules, "validation.quarantine_budget=1").values())[-1]
    assert (last.step, last.status) == ("validate_data", "stopped")
    assert last.reason == f"all {len(month(1))} rows were put aside"
