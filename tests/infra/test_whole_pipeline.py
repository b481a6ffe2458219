"""What `evertrain init` writes runs, and on real servers at once: a whole run takes a minute.

Data and store on S3, models in MLflow on PostgreSQL with its artifacts on S3; the champion is then
scored by a client that has neither this project nor a key.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from loopback import BUCKET, S3Server
from stock_client import stock_predict

from components.common.champion import PromotionLog
from components.common.champion_model import package_folder
from infra.registry import Registry
from infra.s3 import S3Store
from tests.small_project.command import evertrain
from tests.small_project.make_data import write_months
from training_core.package import Package
from training_core.tabular import TabularPreprocessor


@pytest.mark.slow
@pytest.mark.smoke  # test_run.py has whole runs without servers
@pytest.mark.timeout(600)
def test_what_init_wrote_runs_to_its_end_and_naming_servers_is_all_that_these_take(
    s3_environment: S3Server, mlflow_over_s3: str, tmp_path: Path
) -> None:
    write_months(tmp_path / "data", 1, 2)
    project = tmp_path / "project"
    began = evertrain("init", tmp_path / "data", "--label", "bought", "--project", project)
    assert began.code == 0, began.err
    assert "row key" in began.out
    assert f"evertrain run {project}" in began.out

    prefix = uuid.uuid4().hex
    data = S3Store(bucket=BUCKET, prefix=f"{prefix}/data")
    files = sorted((tmp_path / "data").glob("*.parquet"))
    rows = pd.read_parquet(files[-1]).head(50)
    for file in files:
        data.put_file(file.name, file)
        file.unlink()
    store = f"s3://{BUCKET}/{prefix}/store"
    servers = {**s3_environment.environment, "MLFLOW_TRACKING_URI": mlflow_over_s3}
    servers["EVERTRAIN_STORE"] = store
    words = ("run", project, "--data", data.uri, "--json")

    ended = evertrain(*words, more=servers)
    assert ended.code == 0, ended.err
    record = ended.json
    assert (record["status"], record["verdict"]) == ("finished", "promote")
    assert record["champion_after"] == "1"

    log = PromotionLog(S3Store(bucket=BUCKET, prefix=f"{prefix}/store"))
    assert [entry.version for entry in log.entries()] == ["1"]
    assert json.loads(log.store.get(f"runs/{record['run']}/run.json")) == record
    registry = Registry(uri=mlflow_over_s3, experiment=record["project"])
    assert registry.aliases(record["project"]) == {"champion": "1"}
    assert not (project / ".evertrain" / "mlflow.db").exists()
    assert not (project / ".evertrain" / "store").exists()

    (tmp_path / "far").mkdir()
    name = f"models:/{record['project']}@champion"
    found = stock_predict(name, rows, tmp_path / "far", MLFLOW_TRACKING_URI=mlflow_over_s3)
    folder = package_folder(log.store, log.entries()[0].package, tmp_path / "cache")
    expected = Package(folder, TabularPreprocessor).predict(rows)
    np.testing.assert_allclose(found["prediction"], expected, rtol=1e-6)

    again = evertrain(*words, more=servers).json
    assert (again["status"], again["exit_code"]) == ("nothing_new", 0)
