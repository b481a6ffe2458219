"""What `evertrain init` writes runs, and on real servers at once: a whole run takes a minute.

Data and store on S3, models in MLflow on PostgreSQL.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
from loopback import BUCKET, S3Server

from components.common.champion import PromotionLog
from infra.registry import Registry
from infra.s3 import S3Store
from tests.small_project.command import evertrain
from tests.small_project.make_data import write_months


@pytest.mark.slow
@pytest.mark.smoke  # test_run.py has whole runs without servers
@pytest.mark.timeout(400)
def test_what_init_wrote_runs_to_its_end_and_naming_servers_is_all_that_these_take(
    s3_environment: S3Server, mlflow_server: str, tmp_path: Path
) -> None:
    write_months(tmp_path / "data", 1, 2)
    project = tmp_path / "project"
    began = evertrain("init", tmp_path / "data", "--label", "bought", "--project", project)
    assert began.code == 0, began.err
    assert "row key" in began.out
    assert f"evertrain run {project}" in began.out

    prefix = uuid.uuid4().hex
    data = S3Store(bucket=BUCKET, prefix=f"{prefix}/data")
    for file in sorted((tmp_path / "data").glob("*.parquet")):
        data.put_file(file.name, file)
        file.unlink()
    store = f"s3://{BUCKET}/{prefix}/store"
    servers = {**s3_environment.environment, "MLFLOW_TRACKING_URI": mlflow_server}
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
    registry = Registry(uri=mlflow_server, experiment=record["project"])
    assert registry.aliases(record["project"]) == {"champion": "1"}
    assert not (project / ".evertrain" / "mlflow.db").exists()
    assert not (project / ".evertrain" / "store").exists()

    again = evertrain(*words, more=servers).json
    assert (again["status"], again["exit_code"]) == ("nothing_new", 0)
