"""What is registered is scored by MLflow's own client and command line, without this project.

On SQLite with a folder, and on a server over PostgreSQL with its artifacts on S3, which either
serves them or only says where they lie.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from loopback import S3Server
from stock_client import command_line_predict, stock_predict

import components.promote_model
from infra.registry import Registry
from infra.s3 import S3Store
from infra.tracking import Tracking
from tests.sample_packages.writing import KINDS, Written, written

SERVE = Path(components.promote_model.__file__).with_name("serve.py")


class Champion(NamedTuple):
    uri: str
    model: str
    package: Written
    source: str

    @property
    def name(self) -> str:
        return f"models:/{self.model}@champion"


def promoted(uri: str, kind: str, folder: Path) -> Champion:
    """Register a package as `promote_model` does, and make it champion."""
    model = f"stock-{kind}-{uuid.uuid4().hex[:8]}"
    package = written(folder, kind)
    run = Tracking(uri=uri, experiment=model).open_run(key="k", name="n", tags={})
    registry = Registry(uri=uri, experiment=model)
    version = registry.register(
        model,
        run_id=run,
        package=package.folder,
        serve_file=SERVE,
        code_files=[],
        tags={},
        input_example=None,
        pip_requirements=["torch", "pandas", "numpy", "mlflow"],
    )
    registry.set_aliases(model, {"champion": version})
    client = registry._client
    place = client.get_model_version_download_uri(model, version)
    return Champion(uri, model, package, place)


def assert_same(found: pd.DataFrame, package: Written) -> None:
    """Hold what a client gives against what the package predicts."""
    expected = package.expected
    if expected.ndim == 1:
        assert list(found.columns) == ["prediction"]
        scores = found["prediction"].to_numpy()
    else:
        assert list(found.columns) == [f"prediction.{i}" for i in range(expected.shape[1])]
        scores = np.stack([np.stack(list(found[name])) for name in found.columns], axis=1)
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.smoke
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_of_each_kind_is_scored_from_a_database_and_a_folder(
    kind: str, sqlite_uri: str, tmp_path: Path
) -> None:
    champion = promoted(sqlite_uri, kind, tmp_path)
    (tmp_path / "far").mkdir()
    found = stock_predict(
        champion.name, champion.package.rows, tmp_path / "far", MLFLOW_TRACKING_URI=sqlite_uri
    )
    assert_same(found, champion.package)


@pytest.mark.smoke
def test_it_is_scored_from_a_server_with_its_artifacts_on_s3_by_a_client_without_keys(
    mlflow_over_s3: str, s3_environment: S3Server, tmp_path: Path
) -> None:
    champion = promoted(mlflow_over_s3, "regression", tmp_path)
    assert champion.source.startswith("mlflow-artifacts:/")
    inside = champion.source.removeprefix("mlflow-artifacts:/").strip("/")
    stored = S3Store(bucket="evertrain-tests", prefix=f"mlflow/{inside}")
    assert stored.get("artifacts/package/package.json")  # it does lie on S3
    (tmp_path / "far").mkdir()
    found = stock_predict(
        champion.name, champion.package.rows, tmp_path / "far", MLFLOW_TRACKING_URI=mlflow_over_s3
    )
    assert_same(found, champion.package)


@pytest.mark.smoke
def test_it_is_scored_by_a_client_that_fetches_the_artifacts_from_s3_itself(
    mlflow_beside_s3: str, s3_environment: S3Server, tmp_path: Path
) -> None:
    champion = promoted(mlflow_beside_s3, "multilabel", tmp_path)
    assert champion.source.startswith("s3://evertrain-tests/mlflow-root/")
    (tmp_path / "far").mkdir()
    found = stock_predict(
        champion.name,
        champion.package.rows,
        tmp_path / "far",
        MLFLOW_TRACKING_URI=mlflow_beside_s3,
        **s3_environment.environment,
    )
    assert_same(found, champion.package)


@pytest.mark.smoke
def test_it_is_scored_from_mlflows_command_line(sqlite_uri: str, tmp_path: Path) -> None:
    champion = promoted(sqlite_uri, "regression", tmp_path)
    (tmp_path / "far").mkdir()
    found = command_line_predict(
        champion.name, champion.package.rows, tmp_path / "far", MLFLOW_TRACKING_URI=sqlite_uri
    )
    assert_same(found, champion.package)
