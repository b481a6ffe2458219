"""An ensemble's package: the mean of its members for every kind of task, wherever it is loaded."""

from __future__ import annotations

import importlib.util
import json
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from components.common.project import open_project
from components.common.smoke import smoke_test
from components.promote_model import step as promote_step
from tests.small_kinds.make_kind import KINDS, make_kind, month
from tests.small_project.make_data import month as sales_month
from tests.small_project.task import SmallTask
from training_core.ensembles import parameters_of, write_ensemble
from training_core.errors import TrainingFailed
from training_core.package import Package, write_package
from training_core.tabular import TabularPreprocessor


def member(folder: Path, task: Any, train: pd.DataFrame, *, seed: int) -> Package:
    """Package a network that was initialised, not trained."""
    preprocessor = task.preprocessor().fit(train)
    torch.manual_seed(seed)
    write_package(
        folder, task=task, preprocessor=preprocessor, model=task.build_model(preprocessor),
        sample=train.head(64), facts={},
    )  # fmt: skip
    return Package(folder, type(preprocessor))


def served(folder: Path, rows: pd.DataFrame) -> pd.DataFrame:
    """What MLflow's stock client would say, by the file that it runs."""
    file = Path(promote_step.__file__).with_name("serve.py")
    spec = importlib.util.spec_from_file_location("served", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # mlflow's own, of what it would do with type hints
        spec.loader.exec_module(module)
    model = module.PackagedModel()
    model.load_context(SimpleNamespace(artifacts={"package": str(folder)}))
    found: pd.DataFrame = model.predict(None, rows)
    return found


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[] if kind in ("sequence", "regression") else pytest.mark.smoke)
        for kind in KINDS
    ],
)
def test_the_mean_is_that_of_the_members_and_the_same_after_each_loading(
    tmp_path: Path, kind: str
) -> None:
    task = open_project(make_kind(tmp_path / kind, kind, 1)).task()
    rows = month(1, kind)
    members = [member(tmp_path / str(i), task, rows, seed=i) for i in range(2)]
    write_ensemble(tmp_path / "all", members=members, task=task, sample=rows.head(64), facts={})
    preprocessor = type(task.preprocessor())
    whole = Package(tmp_path / "all", preprocessor)
    predictions = whole.predict(rows)
    total = members[0].predict(rows) + members[1].predict(rows)
    np.testing.assert_array_equal(predictions, total / 2)
    np.testing.assert_array_equal(
        Package(tmp_path / "all", preprocessor).predict(rows), predictions
    )
    for count in (1, 5):  # a matrix product of another size may round otherwise
        np.testing.assert_allclose(whole.predict(rows.head(count)), predictions[:count], rtol=1e-5)
    assert len(whole.predict(rows.head(0))) == 0
    assert whole.columns == members[0].columns
    assert parameters_of(whole) == 2 * parameters_of(members[0])
    # one preparation for all of them: the package is as of one model
    assert type(whole.preprocessor) is preprocessor
    tried = smoke_test(tmp_path / "all", rows[whole.columns].head(50), predictions[:50])
    assert tried.outcome == "pass", tried.message


def test_members_keep_vocabularies_and_scales_of_their_own(tmp_path: Path) -> None:
    rows = sales_month(1)
    known = rows[rows["kind"] != rows["kind"].iloc[0]]
    shifted = known.assign(number=known["number"] * 3 + 5)
    task = SmallTask()
    fitted = [rows, known, shifted, rows]
    members = [member(tmp_path / str(i), task, r, seed=i) for i, r in enumerate(fitted)]
    write_ensemble(tmp_path / "all", members=members, task=task, sample=rows.head(64), facts={})
    whole = Package(tmp_path / "all", TabularPreprocessor)
    expected = sum((each.predict(rows) for each in members[1:]), members[0].predict(rows)) / 4
    np.testing.assert_array_equal(whole.predict(rows), expected)
    assert whole.columns == members[0].columns
    manifest = json.loads((tmp_path / "all" / "package.json").read_text())
    state = json.loads((tmp_path / "all" / "preprocessor.json").read_text())
    assert manifest["preprocessor"] == "JoinedPreprocessor"
    assert len(state["members"]) == 3  # the first and the last prepare rows alike
    raw = rows[whole.columns]
    tried = smoke_test(tmp_path / "all", raw.head(50), expected[:50])
    assert tried.outcome == "pass", tried.message
    np.testing.assert_array_equal(served(tmp_path / "all", raw)["prediction"], expected)
    both = [members[1], whole]
    with pytest.raises(TrainingFailed, match="itself a mean of models with preparations"):
        write_ensemble(tmp_path / "two", members=both, task=task, sample=rows.head(64), facts={})


def test_the_log_loss_of_the_mean_is_not_above_the_mean_of_the_members(tmp_path: Path) -> None:
    rows, task = sales_month(1), SmallTask()
    members = [member(tmp_path / str(i), task, rows, seed=i) for i in range(3)]
    write_ensemble(tmp_path / "all", members=members, task=task, sample=rows.head(64), facts={})
    truth = task.target(rows) > 0

    def log_loss(package: Package) -> float:
        found = package.predict(rows)
        return float(-np.log(np.where(truth, found, 1 - found)).mean())

    whole = log_loss(Package(tmp_path / "all", TabularPreprocessor))
    assert whole < np.mean([log_loss(each) for each in members])


def test_a_package_that_predicts_something_else_than_the_mean_is_never_written_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, task = sales_month(1), SmallTask()
    members = [member(tmp_path / str(i), task, rows, seed=i) for i in range(2)]
    other = members[0].predict(rows) + 0.1
    monkeypatch.setattr(members[0], "predict", lambda frame: other[: len(frame)])
    with pytest.raises(TrainingFailed, match="something else than the mean of its members"):
        write_ensemble(tmp_path / "all", members=members, task=task, sample=rows.head(9), facts={})
