"""What the suite of the flights example stops, what its task can score, and its year."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from components.common.data_settings import DataSettings
from components.common.tables import LocalObject, add_view, open_tables
from components.validate_data.expectations import validate
from tests.examples.flights_example import EXAMPLE, load, prepare, task_module

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
def failures(tmp_path_factory: pytest.TempPathFactory) -> Failures:
    """Validate rows against the committed suite; return what failed: severity and type."""
    folder = tmp_path_factory.mktemp("suite")
    settings = DataSettings(source="data", row_key=["id"])

    def failed(rows: pd.DataFrame) -> list[tuple[str, str]]:
        file = folder / "rows.parquet"
        rows.to_parquet(file, index=False)
        with open_tables(settings, readable=[folder], scratch=folder / "scratch") as connection:
            add_view(connection, "rows", [LocalObject("rows", file, len(rows))])
            seen = validate(connection, "rows", EXAMPLE / "expectations.json")
        return [(e.severity, f"expect_{e.name}") for e in seen if not e.success]

    return failed


@pytest.mark.parametrize("last", [3, 4, 8, 12])
def test_the_suite_passes_the_months_up_to(
    last: int, rows: pd.DataFrame, failures: Failures
) -> None:
    assert failures(rows[rows["date"] < f"2013-{last + 1:02d}"]) == []


@pytest.mark.smoke  # a month of flights, spoiled in each way
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
            year.fit_network(task_module.FlightsTask(), train, validation, 0)(validation),
            validation["late"].to_numpy(),
        ).mean()
        for _ in range(2)
    ]
    prior = year.log_loss(year.fit_prior(train)(validation), validation["late"].to_numpy()).mean()
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)
    assert losses[0] < prior - 0.01


def test_the_noise_is_measured_on_parts_as_a_run_makes_them(rows: pd.DataFrame) -> None:
    kept = rows["late"].notna() & ~(rows["wind_speed"] > 150)
    months = kept & (rows["date"] < "2013-05-01")
    train, validation, holdout = load("noise").divided(rows[months])
    whole = [len({t.date() for t in part["time_hour"]}) for part in (validation, holdout)]
    assert whole == [14, 14]
    assert train["time_hour"].max() < validation["time_hour"].min()
    assert validation["time_hour"].max() < holdout["time_hour"].min()
    assert (len(train), len(validation), len(holdout)) == (80_949, 12_877, 11_950)  # of the demo
