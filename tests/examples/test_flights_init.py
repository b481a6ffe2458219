"""`evertrain init` on the flights, beside the project that was written by hand."""

from __future__ import annotations

import json

import great_expectations as gx
import pandas as pd
import pytest
import torch
import yaml

from components.common.project import open_project
from pipelines.init.proposal import Given
from pipelines.init.start import Written, start
from tests.examples.flights_example import EXAMPLE, prepare, task_module


@pytest.fixture(scope="module")
def written(rows: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """The project proposed from January to March."""
    folder = tmp_path_factory.mktemp("flights")
    (folder / "data").mkdir()
    for month in (1, 2, 3):
        prepare.write_month(rows, month=month, folder=folder / "data")
    return start(str(folder / "data"), folder=folder / "project", given=Given(label="late"))


def test_it_reads_what_the_example_reads_and_leaves_the_rest(written: Written) -> None:
    found = written.proposal.features
    assert set(found.categories) == set(task_module.CATEGORIES)
    assert set(found.numbers) == {*task_module.NUMBERS, "arrival_hour"}
    assert set(found.left_out) == {"date", "flight", "time_hour", "late"}
    assert written.proposal.leaks == []


def test_its_key_is_unique_in_months_that_it_never_saw(
    written: Written, rows: pd.DataFrame
) -> None:
    assert not rows.duplicated(written.proposal.key).any()


def test_it_divides_and_compares_as_the_example_does(written: Written) -> None:
    settings = open_project(written.folder).settings
    by_hand = yaml.safe_load((EXAMPLE / "evertrain.yaml").read_text())
    assert settings.split.model_dump(include={"by", "holdout", "validation"}) == by_hand["split"]
    assert settings.data.time_column == by_hand["data"]["time_column"]
    assert set(settings.baselines.table) == set(by_hand["baselines"]["table"])
    assert settings.decision.must_beat == by_hand["decision"]["must_beat"]
    assert settings.decision.retraining_noise is None, "it is measured"


def test_it_scores_flights_and_great_expectations_takes_its_suite(
    written: Written, rows: pd.DataFrame
) -> None:
    task = open_project(written.folder).task()
    march = rows[rows["date"].str[5:7] == "03"]
    preprocessor = task.preprocessor().fit(march)
    network = task.build_model(preprocessor).eval()
    arrays = {n: torch.from_numpy(a) for n, a in preprocessor.transform(march).items()}
    with torch.no_grad():
        assert network(**arrays).shape == (len(march),)
    content = json.loads((written.folder / "expectations.json").read_text())
    suite = gx.ExpectationSuite(**content)
    assert len(suite.expectations) == len(content["expectations"]) == 82
