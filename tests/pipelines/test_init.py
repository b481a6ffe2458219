"""What `evertrain init` writes; that it runs to its end says tests/infra/test_whole_pipeline.py."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import great_expectations as gx
import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from great_expectations.data_context.types.base import ProgressBarsConfig
from init_samples import orders, write, written

from components.common.project import open_project
from pipelines.init.rendering import literal, scalar
from pipelines.init.writing import FILES
from tests.pipelines.linting import lint
from tests.small_project.command import REPOSITORY, environment, evertrain
from training_core import TabularPreprocessor
from training_core.package import write_package

# Names that files hold and that no code would choose.
WILD = {
    "price": 'price "net", €',
    "country": "select",
    "weekday": "week day",
    "hour": "hour's \\ n",
    "returning": "Ünïcode\ttab",
    "discount": "on",
    "order_id": "order id: #1",
    "ordered_at": "at",
    "bought": "{{ y }}",
    "comment": "day",
    "refund": "half\nof it",
}


def scored(project: Path, rows: pd.DataFrame) -> torch.Tensor:
    """Logits of rows, from the project's own untrained network."""
    task = open_project(project).task()
    preprocessor = task.preprocessor().fit(rows)
    assert isinstance(preprocessor, TabularPreprocessor)
    network = task.build_model(preprocessor).eval()
    arrays = {n: torch.from_numpy(a) for n, a in preprocessor.transform(rows).items()}
    logits: torch.Tensor = network(**arrays)
    assert torch.isfinite(task.loss(logits, torch.from_numpy(task.target(rows)))).any()
    return logits


def failed(project: Path, rows: pd.DataFrame, *, severity: str = "") -> list[str]:
    """Expectations of the project's suite that rows do not fulfil, on pandas.

    Without those of DuckDB's types and queries: pandas has other types, and no queries.
    """
    content = json.loads((project / "expectations.json").read_text())
    content["expectations"] = [
        e
        for e in content["expectations"]
        if not e["type"].endswith("type_list") and e["type"] != "unexpected_rows_expectation"
    ]
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    batch = (
        context.data_sources.add_pandas("memory")
        .add_dataframe_asset("rows")
        .add_batch_definition_whole_dataframe("all")
        .get_batch(batch_parameters={"dataframe": rows})
    )
    found = batch.validate(gx.ExpectationSuite(**content), result_format="BASIC").results
    assert len(found) == len(content["expectations"])
    return [
        f"{r.expectation_config.type} {r.expectation_config.kwargs.get('column', '')}".strip()
        for r in found
        if not r.success and severity in ("", r.expectation_config.severity)
    ]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project written for the shop's orders."""
    return written(write(tmp_path / "data", orders()), tmp_path / "shop").folder


def test_the_written_project_opens_scores_and_keeps_to_its_suite(shop: Path) -> None:
    settings = open_project(shop).settings
    assert (settings.name, settings.data.source) == ("shop", "../data")
    assert (settings.data.row_key, settings.data.time_column) == (["order_id"], "ordered_at")
    assert Path(open_project(shop).data_source) == shop.parent / "data"
    assert scored(shop, orders()).shape == (3_000,)
    assert failed(shop, orders()) == []


def test_the_suite_stops_what_would_spoil_a_model_and_warns_of_what_is_new(shop: Path) -> None:
    rows = orders()
    for spoilt, critical in (
        (rows.drop(columns="price"), "expect_table_columns_to_match_set"),
        (rows.iloc[:1_000], "expect_table_row_count_to_be_between"),
        (pd.concat([rows, rows]), "expect_column_values_to_be_unique order_id"),
        (rows.assign(bought=rows["bought"] + 1), "expect_column_values_to_be_in_set bought"),
        (
            rows.assign(country=rows["country"].where(rows.index % 20 > 0)),
            "expect_column_values_to_not_be_null country",
        ),
    ):
        assert critical in failed(shop, spoilt, severity="critical")
    for odd, warning in (
        (rows.assign(price=-rows["price"] / 10), "expect_column_values_to_be_between price"),
        (
            rows.assign(price=rows["price"].where(rows.index % 100 > 0, 1e6)),
            "expect_column_values_to_be_between price",
        ),
        (rows.assign(price=rows["price"] * 100), "expect_column_values_to_be_between price"),
        (rows.assign(country="XX"), "expect_column_values_to_be_in_set country"),
        (rows.assign(bought=0), "expect_column_mean_to_be_between bought"),
    ):
        assert failed(shop, odd) == [warning]
        assert failed(shop, odd, severity="critical") == []


def test_the_suite_is_as_great_expectations_would_write_it(shop: Path) -> None:
    content = json.loads((shop / "expectations.json").read_text())
    assert all(e["notes"] for e in content["expectations"]), "each says why it is there"
    suite = gx.ExpectationSuite(**content)
    again = suite.to_json_dict()
    told = [(e["type"], e["kwargs"], e["severity"], e["notes"]) for e in again["expectations"]]
    assert told == [
        (e["type"], e["kwargs"], e["severity"], e["notes"]) for e in content["expectations"]
    ]
    types = {e["type"] for e in content["expectations"]}
    assert "unexpected_rows_expectation" not in types, "the newest order is old: nothing is fresh"


def test_types_of_the_suite_are_what_duckdb_calls_them(shop: Path) -> None:
    content = json.loads((shop / "expectations.json").read_text())
    types = {
        e["kwargs"]["column"]: e["kwargs"]["type_list"]
        for e in content["expectations"]
        if e["type"].endswith("type_list")
    }
    whole = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT"]
    assert types == {
        "ordered_at": ["TIMESTAMP WITH TIME ZONE"],
        "bought": whole,
        "price": ["FLOAT", "DOUBLE"],
        "discount": ["FLOAT", "DOUBLE"],
        "country": ["VARCHAR"],
        "returning": ["BOOLEAN"],
        "weekday": whole,
        "hour": whole,
    }


def test_every_choice_has_its_reason_beside_it(shop: Path) -> None:
    task, settings = ((shop / name).read_text() for name in ("task.py", "evertrain.yaml"))
    for column in ("order_id", "customer_id", "comment", "currency", "fax", "refund"):
        assert f"\n- {column}: " in (ast.get_docstring(ast.parse(task)) or "")
    assert "is measured: the first four runs" in settings
    assert "A whole week each" in settings
    readme = (shop / "README.md").read_text()
    assert readme.index("**`refund`** looks like a leak") < readme.index("What is known in time?")
    assert all(len(line) <= 100 for line in (task + settings).splitlines())


def test_wild_names_are_written_so_that_everything_reads_them_back(tmp_path: Path) -> None:
    rows = orders().rename(columns=WILD)
    project = written(
        write(tmp_path / "data", rows), tmp_path / "Wild & project", label=WILD["bought"]
    ).folder
    settings = open_project(project).settings
    assert settings.name == "wild-project"
    assert settings.data.row_key == [WILD["order_id"]]
    assert settings.data.time_column == WILD["ordered_at"]
    assert set(settings.baselines.table) <= {WILD["country"], WILD["hour"], WILD["weekday"]}
    assert scored(project, rows).shape == (3_000,)
    assert failed(project, rows) == []
    assert lint(project / "task.py") == ""
    task = (project / "task.py").read_text()
    assert "- " + json.dumps(WILD["refund"]) in task, "a name of two lines stays on one"


@pytest.mark.parametrize(
    "columns",
    [["price", "discount"], ["country", "returning"], ["price"], ["country", "hour", "discount"]],
    ids=" ".join,
)
def test_a_network_of_numbers_or_categories_alone_can_be_packaged(
    tmp_path: Path, columns: list[str]
) -> None:
    rows = orders()[["order_id", "ordered_at", *columns, "bought"]]
    project = written(write(tmp_path / "data", rows), tmp_path / "project").folder
    task = open_project(project).task()
    preprocessor = task.preprocessor().fit(rows)
    write_package(
        tmp_path / "package",
        task=task,
        preprocessor=preprocessor,
        model=task.build_model(preprocessor),
        sample=rows.head(50),
        facts={},
    )
    assert lint(project / "task.py") == ""


@pytest.mark.parametrize(
    ("negative", "positive"), [("stayed", "left"), (1, 2), (-1.0, 1.0), (False, True)]
)
def test_labels_of_any_two_values_become_0_and_1(
    tmp_path: Path, negative: Any, positive: Any
) -> None:
    rows = orders(1_000)
    rare = rows["bought"].to_numpy() == rows["bought"].value_counts().index[-1]
    labels = [positive if yes else negative for yes in rare]
    rows["bought"] = pd.Series([None, *labels[1:]], dtype=object).infer_objects()
    data = write(tmp_path / "data", rows)
    project = written(data, tmp_path / "project").folder
    stored = pd.concat([pd.read_parquet(f) for f in sorted(data.iterdir())])
    target = open_project(project).task().target(stored)
    assert target.dtype == np.float32
    assert np.isnan(target[0])
    np.testing.assert_array_equal(target[1:], rare[1:].astype(np.float32))
    assert failed(project, stored) == []
    assert lint(project / "task.py") == ""


def test_the_written_task_is_as_clean_as_our_own_code(shop: Path) -> None:
    assert lint(shop / "task.py") == ""


@pytest.mark.smoke  # mypy reads torch: over a minute where it has no cache
def test_the_written_task_has_the_types_that_it_says(shop: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", shop / "task.py"],
        capture_output=True, text=True, check=False, cwd=REPOSITORY,
        env=environment() | {"MYPYPATH": str(REPOSITORY)},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_names_come_back_from_python_and_yaml_as_they_were() -> None:
    names = [*WILD.values(), "yes", "null", "1", "1.5", "2025-01-01", "a: b", "- a", "~", "0x1"]
    names += ["", "a\\'\"", "a:", "*", "x#y", "x #y"]
    assert [ast.literal_eval(literal(name)) for name in names] == names
    assert [yaml.safe_load(f"[{scalar(name)}]") for name in names] == [[name] for name in names]


def test_csv_gives_a_project_that_names_its_types(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    orders().to_csv(tmp_path / "data" / "orders.csv", index=False)
    settings = open_project(written(tmp_path / "data", tmp_path / "project").folder).settings
    assert settings.data.pattern == "*.csv"
    assert settings.data.types["price"] == "DOUBLE"
    assert "comment" not in settings.data.types, "what is not read needs no type"


@pytest.mark.smoke  # checks a project twice
def test_force_writes_the_same_project_again(tmp_path: Path) -> None:
    data, project = write(tmp_path / "data", orders(1_000)), tmp_path / "project"
    words = ["init", data, "--label", "bought", "--project", project, "--json"]
    first = evertrain(*words)
    assert first.code == 0, first.err
    assert first.json["row_key"] == ["order_id"]
    assert first.json["files"] == [str(project / name) for name in FILES]
    before = {name: (project / name).read_bytes() for name in FILES}
    assert evertrain(*words).code == 2
    assert evertrain(*words, "--force").json == first.json
    assert {name: (project / name).read_bytes() for name in FILES} == before
