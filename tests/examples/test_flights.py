"""The flights example: what its files hold, what its suite stops, what its task can score."""

from __future__ import annotations

import csv
import datetime as dt
import importlib.util
import io
import json
import sys
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch

EXAMPLE = Path(__file__).parents[2] / "examples" / "flights"


def load(name: str) -> ModuleType:
    """Import a file of the example under a name of its own: `task` is a common word."""
    key = f"flights_{name}"
    if key not in sys.modules:
        spec = importlib.util.spec_from_file_location(key, EXAMPLE / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[key] = module
        spec.loader.exec_module(module)
    return sys.modules[key]


prepare = load("prepare")
task_module = load("task")


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Networks this small are no faster on two threads, and far slower beside other work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return prepare.build(prepare.source_folder())


@pytest.fixture(scope="module")
def source() -> dict[tuple[str, str, str, str], dict[str, str]]:
    """The CSV file as it is, by row key, read by other means than the code under test."""
    with zipfile.ZipFile(prepare.source_folder() / "flights.csv.zip") as archive:
        text = io.TextIOWrapper(archive.open("flights.csv"), encoding="utf-8")
        found = {}
        for row in csv.DictReader(text):
            date = f"{row['year']}-{int(row['month']):02d}-{int(row['day']):02d}"
            found[date, row["carrier"], row["flight"], row["origin"]] = row
        return found


def keys(rows: pd.DataFrame) -> list[tuple[str, str, str, str]]:
    return list(
        zip(rows["date"], rows["carrier"], rows["flight"].astype(str), rows["origin"], strict=True)
    )


# --- the files ----------------------------------------------------------------------------------


def test_every_scheduled_flight_is_one_row(rows: pd.DataFrame, source: dict[Any, Any]) -> None:
    assert len(rows) == len(source) == 336_776
    assert set(keys(rows)) == set(source)


def test_no_column_tells_what_happened_after_departure(rows: pd.DataFrame) -> None:
    told = {"dep_time", "dep_delay", "arr_time", "arr_delay", "air_time", "tailnum"}
    assert not told & set(rows.columns)
    task = task_module.FlightsTask()
    used = task.preprocessor().columns
    assert task.label not in used
    assert set(used) <= set(rows.columns)


def test_no_feature_alone_ranks_the_labels(rows: pd.DataFrame) -> None:
    labelled = rows[rows["late"].notna()]
    positive = labelled["late"].to_numpy() == 1
    for column in task_module.NUMBERS:
        ranks = labelled[column].fillna(-1).rank().to_numpy()
        n, m = positive.sum(), (~positive).sum()
        auc = (ranks[positive].sum() - n * (n + 1) / 2) / (n * m)
        assert 0.3 < auc < 0.7, column


def test_the_label_is_fifteen_minutes_and_cancelled_flights_have_none(
    rows: pd.DataFrame, source: dict[Any, Any]
) -> None:
    expected = np.array(
        [
            np.nan if source[key]["dep_time"] == "NA" else float(int(source[key]["dep_delay"]) > 15)
            for key in keys(rows)
        ]
    )
    assert np.isnan(expected).sum() == 8_255
    np.testing.assert_array_equal(rows["late"].to_numpy(), expected)


def test_files_are_cut_by_the_local_month(rows: pd.DataFrame, tmp_path: Path) -> None:
    january = pd.read_parquet(prepare.write_month(rows, month=1, folder=tmp_path))
    assert len(january) == 27_004
    assert set(january["date"].str[:7]) == {"2013-01"}
    assert january["time_hour"].max() == pd.Timestamp("2013-02-01T04:00:00Z")
    assert (rows["time_hour"].dt.month != rows["date"].str[5:7].astype(int)).sum() == 1_218


def test_the_same_month_is_the_same_bytes_whatever_else_is_asked_for(tmp_path: Path) -> None:
    assert prepare.main(["--data", str(tmp_path / "alone"), "--months", "4"]) == 0
    assert prepare.main(["--data", str(tmp_path / "among"), "--months", "3-4,12"]) == 0
    names = sorted(path.name for path in (tmp_path / "among").iterdir())
    assert names == [f"flights-2013-{month:02d}.parquet" for month in (3, 4, 12)]
    alone, among = ((tmp_path / folder / names[1]).read_bytes() for folder in ("alone", "among"))
    assert alone == among


def test_types_do_not_depend_on_the_month(rows: pd.DataFrame, tmp_path: Path) -> None:
    for month in range(1, 13):
        path = prepare.write_month(rows, month=month, folder=tmp_path)
        assert pq.read_schema(path).equals(prepare.SCHEMA), path.name


def test_an_interrupted_write_leaves_the_file_that_was_there(
    rows: pd.DataFrame, tmp_path: Path
) -> None:
    target = prepare.write_month(rows, month=1, folder=tmp_path)
    before = target.read_bytes()
    with pytest.raises(KeyError):
        prepare.write_month(rows.drop(columns="dest"), month=1, folder=tmp_path)
    assert target.read_bytes() == before
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("text", ["0", "13", "3-1", "x", "", "1-"])
def test_months_that_are_none_are_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        prepare.main(["--data", str(tmp_path), "--months", text])
    assert stopped.value.code == 2
    assert "as in 1-3" in capsys.readouterr().err


# --- the features -------------------------------------------------------------------------------


def test_weather_is_the_observation_three_hours_before(rows: pd.DataFrame) -> None:
    with (prepare.source_folder() / "weather.csv").open(encoding="utf-8") as file:
        observed = {(row["origin"], row["time_hour"]): row for row in csv.DictReader(file)}
    names = {"temperature": "temp", "wind_speed": "wind_speed", "visibility": "visib"}
    spots = pd.concat(
        [
            rows.sample(500, random_state=1),
            rows[rows["date"].isin(["2013-03-10", "2013-11-03"])],  # clocks change
            rows[rows["date"] == "2013-12-31"],  # no weather any more
        ]
    )
    unmatched = 0
    for row in spots.to_dict("records"):
        moment = row["time_hour"].to_pydatetime() - dt.timedelta(hours=3)
        found = observed.get((row["origin"], moment.strftime("%Y-%m-%dT%H:%M:%SZ")))
        unmatched += found is None
        for column, theirs in names.items():
            if found is None or found[theirs] == "NA":
                assert np.isnan(row[column])
            else:
                assert row[column] == pytest.approx(float(found[theirs]))
    assert 0 < unmatched < len(spots) / 2


def test_shares_of_yesterday_count_the_day_before_and_no_other(
    rows: pd.DataFrame, source: dict[Any, Any]
) -> None:
    late: dict[tuple[str, str], list[bool]] = defaultdict(list)
    cancelled: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for (date, carrier, _, origin), row in source.items():
        for group in (carrier, origin):
            cancelled[group, date].append(row["dep_time"] == "NA")
            if row["dep_time"] != "NA":
                late[group, date].append(int(row["dep_delay"]) > 15)
    for row in rows.sample(2_000, random_state=2).to_dict("records"):
        before = str(dt.date.fromisoformat(row["date"]) - dt.timedelta(days=1))
        for by in ("origin", "carrier"):
            for name, outcomes in (("late", late), ("cancelled", cancelled)):
                known = outcomes.get((row[by], before))
                value = row[f"{by}_{name}_yesterday"]
                assert np.isnan(value) if not known else value == pytest.approx(np.mean(known))


# --- the suite ----------------------------------------------------------------------------------

Failures = Callable[[pd.DataFrame], list[tuple[str, str]]]

DOUBLES_MARCH = "a month twice"
CORRUPTIONS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    DOUBLES_MARCH: lambda rows: pd.concat([rows, rows[rows["date"] >= "2013-03-01"]]),
    "a missing column": lambda rows: rows.drop(columns="dest"),
    "a missing feature": lambda rows: rows.drop(columns="plane_age"),
    "a renamed column": lambda rows: rows.rename(columns={"wind_speed": "wind"}),
    "numbers as text": lambda rows: rows.assign(distance=rows["distance"].astype(str)),
    "whole numbers as floats": lambda rows: rows.assign(hour=rows["hour"].astype(float)),
    "no labels": lambda rows: rows.assign(late=np.nan),
    "labels of another kind": lambda rows: rows.assign(late=rows["late"] * 2),
    "a feature full of nulls": lambda rows: rows.assign(
        humidity=rows["humidity"].where(rows["flight"] % 2 == 0)
    ),
    "an unknown airport": lambda rows: rows.assign(origin=rows["origin"].replace("LGA", "HPN")),
    "a few hundred rows": lambda rows: rows.head(500),
}


@pytest.fixture(scope="module")
def failures() -> Failures:
    """Validate rows against the committed suite; return what failed: severity and type."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    asset = context.data_sources.add_pandas("pandas").add_dataframe_asset("flights")
    definition = asset.add_batch_definition_whole_dataframe("all")

    def validate(rows: pd.DataFrame) -> list[tuple[str, str]]:
        with (EXAMPLE / "expectations.json").open() as file:
            suite = gx.ExpectationSuite(**json.load(file))
        batch = definition.get_batch({"dataframe": rows})
        result = batch.validate(suite, result_format="BASIC")
        return [
            (found.expectation_config.severity.value, found.expectation_config.type)
            for found in result.results
            if not found.success
        ]

    return validate


@pytest.mark.parametrize("last", [3, 4, 8, 12])
def test_the_suite_passes_the_months_up_to(
    last: int, rows: pd.DataFrame, failures: Failures
) -> None:
    assert failures(rows[rows["date"] < f"2013-{last + 1:02d}"]) == []


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_the_suite_stops(corruption: str, rows: pd.DataFrame, failures: Failures) -> None:
    spoilt = CORRUPTIONS[corruption](rows[rows["date"] < "2013-04"])
    critical = [name for severity, name in failures(spoilt) if severity == "critical"]
    assert critical
    if corruption == DOUBLES_MARCH:
        assert critical == ["expect_compound_columns_to_be_unique"]


# --- the task -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted(rows: pd.DataFrame) -> tuple[Any, Any, torch.nn.Module]:
    torch.manual_seed(0)
    task = task_module.FlightsTask()
    preprocessor = task.preprocessor().fit(rows[rows["date"] < "2013-02"])
    return task, preprocessor, task.build_model(preprocessor).eval()


def score(fitted: tuple[Any, Any, torch.nn.Module], rows: pd.DataFrame) -> torch.Tensor:
    task, preprocessor, model = fitted
    arrays = {k: torch.from_numpy(v) for k, v in preprocessor.transform(rows).items()}
    with torch.inference_mode():
        return task.predict(model(**arrays))


def test_the_project_opens_and_builds_its_task() -> None:
    from components.common.project import open_project

    project = open_project(EXAMPLE)
    task = project.task()
    assert type(task).__name__ == "FlightsTask"
    assert project.settings.data.row_key == prepare.ROW_KEY
    assert task.label == prepare.LABEL


def test_categories_and_numbers_never_seen_still_score(
    fitted: tuple[Any, Any, torch.nn.Module], rows: pd.DataFrame
) -> None:
    strange = rows.head(4).assign(carrier="ZZ", dest="MARS", engine=None, hour=3, seats=np.nan)
    strange["temperature"] = [np.nan, 1e9, -1e9, 70.0]
    probabilities = score(fitted, strange)
    assert probabilities.shape == (4,)
    assert bool(((probabilities > 0) & (probabilities < 1)).all())


def test_training_teaches_the_index_of_unseen_categories(
    fitted: tuple[Any, Any, torch.nn.Module], rows: pd.DataFrame
) -> None:
    task, preprocessor, _ = fitted
    torch.manual_seed(0)
    model = task.build_model(preprocessor).train()
    seen = rows[(rows["date"] < "2013-02") & rows["late"].notna()].head(2_000)
    arrays = {k: torch.from_numpy(v) for k, v in preprocessor.transform(seen).items()}
    task.loss(model(**arrays), torch.from_numpy(task.target(seen))).mean().backward()
    assert bool((arrays["categories"][:, 0] > 0).all())
    assert all(bool(table.weight.grad[0].abs().sum() > 0) for table in model.embeddings)


def test_the_network_exports_with_any_number_of_rows(
    fitted: tuple[Any, Any, torch.nn.Module], rows: pd.DataFrame
) -> None:
    _, preprocessor, model = fitted
    inputs = {k: torch.from_numpy(v) for k, v in preprocessor.transform(rows.head(8)).items()}
    batch = torch.export.Dim("batch", min=1)
    exported = torch.export.export(
        model, (), kwargs=inputs, dynamic_shapes={name: {0: batch} for name in inputs}
    ).module()
    for count in (1, 3, 700):
        arrays = preprocessor.transform(rows.head(count))
        tensors = {k: torch.from_numpy(v) for k, v in arrays.items()}
        torch.testing.assert_close(exported(**tensors), model(**tensors))
        assert exported(**tensors).shape == (count,)


# --- the year -----------------------------------------------------------------------------------


def test_the_year_never_trains_on_the_month_it_is_tested_on(rows: pd.DataFrame) -> None:
    year = load("year")
    for month in (4, 12):
        train, validation, test = year.split(rows, month=month)
        assert train["date"].max() < validation["date"].min()
        assert validation["date"].nunique() == 14
        assert validation["date"].max() < test["date"].min()
        assert set(test["date"].str[5:7]) == {f"{month:02d}"}
        assert len(train) + len(validation) == (rows["date"] < f"2013-{month:02d}").sum()


def test_the_networks_loop_learns_more_than_the_prior_and_repeats_itself(
    rows: pd.DataFrame,
) -> None:
    year = load("year")
    labelled = rows[rows["late"].notna() & (rows["date"] < "2013-02-08")]
    train, validation = (
        labelled[labelled["date"] < "2013-02"],
        labelled[labelled["date"] >= "2013-02"],
    )
    losses = [
        year.log_loss(
            year.fit_network(task_module.FlightsTask(), train, validation, 0, epochs=4)(validation),
            validation["late"].to_numpy(),
        ).mean()
        for _ in range(2)
    ]
    prior = year.log_loss(year.fit_prior(train)(validation), validation["late"].to_numpy()).mean()
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)
    assert losses[0] < prior - 0.01
