"""The whole pipeline on real servers: data and store on S3, models in MLflow on PostgreSQL."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
from loopback import BUCKET, S3Server

from components.common.champion import PromotionLog
from infra.registry import Registry
from infra.s3 import S3Store
from tests.small_project.command import evertrain, make_project


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_naming_servers_is_the_only_change_on_the_way_out_of_the_embedded_default(
    s3_environment: S3Server, mlflow_server: str, tmp_path: Path
) -> None:
    project = make_project(tmp_path / "project", 1, 2)
    prefix = uuid.uuid4().hex
    data = S3Store(bucket=BUCKET, prefix=f"{prefix}/data")
    for file in sorted((project / "data").glob("*.parquet")):
        data.put_file(file.name, file)
        file.unlink()
    store = f"s3://{BUCKET}/{prefix}/store"
    servers = {**s3_environment.environment, "MLFLOW_TRACKING_URI": mlflow_server}
    servers["EVERTRAIN_STORE"] = store
    words = ("run", project, "--data", data.uri, "--json")

    ended = evertrain(*words, more=servers)
    assert ended.code == 0, ended.err
    record = ended.json
    assert (record["status"], record["champion_after"]) == ("finished", "1")

    log = PromotionLog(S3Store(bucket=BUCKET, prefix=f"{prefix}/store"))
    assert [entry.version for entry in log.entries()] == ["1"]
    assert json.loads(log.store.get(f"runs/{record['run']}/run.json")) == record
    registry = Registry(uri=mlflow_server, experiment=record["project"])
    assert registry.aliases(record["project"]) == {"champion": "1"}
    assert not (project / ".evertrain" / "mlflow.db").exists()
    assert not (project / ".evertrain" / "store").exists()

    again = evertrain(*words, more=servers).json
    assert (again["status"], again["exit_code"]) == ("nothing_new", 0)
