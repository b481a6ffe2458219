"""A deployed schedule with real servers: it trains when something is new, and else ends early.

This is the way without a watcher: Kubeflow's recurring run fires as often as one likes, its first
step sees that data, code and settings are those of a finished run, and the rest is skipped.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
from loopback import BUCKET, S3Server

from components.common.champion import PromotionLog
from infra.s3 import S3Store
from tests.cluster.conftest import kfp_home as kfp_home
from tests.cluster.kfp_executors import LocalPipeline
from tests.cluster.kfp_server import KfpServer, RunHandle
from tests.pipelines.deploy_case import Case
from tests.small_project.make_data import write_months


def as_pods(handle: RunHandle, folder: Path) -> str:
    """Run it here; on a cluster the pods' label says which run they belong to."""
    environment = {"EVERTRAIN_RUN_ID": handle.run.key, "OMP_NUM_THREADS": "1"}
    return LocalPipeline(folder, environment=environment)(handle)


def wait_for(server: KfpServer) -> None:
    for thread in server.state.threads:
        thread.join(280)


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.timeout(600)
def test_a_schedule_trains_once_for_what_is_new_and_ends_early_after_that(
    s3_environment: S3Server,
    mlflow_over_s3: str,
    kfp_home: Path,
    tmp_path: Path,
) -> None:
    prefix = uuid.uuid4().hex
    data = S3Store(bucket=BUCKET, prefix=f"{prefix}/data")
    write_months(tmp_path / "data", 1, 2)
    for file in (tmp_path / "data").glob("*.parquet"):
        data.put_file(file.name, file)
    store = S3Store(bucket=BUCKET, prefix=f"{prefix}/store")
    with KfpServer(executor=lambda handle: as_pods(handle, tmp_path / "runs")) as server:
        case = Case(tmp_path / "project", server)
        case.write(
            {
                "data": {**case.settings["data"], "source": data.uri},
                "store": store.uri,
                "tracking": {"uri": mlflow_over_s3},
                "cluster": {
                    **case.settings["cluster"],
                    "project": str(case.folder),
                    "environment": {"EVERTRAIN_HOME": str(tmp_path / "home")},
                },
            }
        )
        assert case.deploy().code == 0
        schedule = case.one("nightly").key

        first = server.tick(schedule)
        wait_for(server)
        assert first is not None
        assert first.state == "SUCCEEDED", first.error
        record = json.loads(store.get(f"runs/{first.key}/run.json"))
        assert (record["status"], record["decision"]) == ("finished", "promoted")
        assert {"train-distributed", "promote-model", "report-run"} <= set(first.tasks)

        second = server.tick(schedule)
        wait_for(server)
        assert second is not None
        assert second.state == "SUCCEEDED", second.error
        record = json.loads(store.get(f"runs/{second.key}/run.json"))
        assert (record["status"], record["exit_code"]) == ("nothing_new", 0)
        begun = {name for name, task in second.tasks.items() if task.state == "SUCCEEDED"}
        assert "train-distributed" not in begun
        assert {"snapshot-data", "report-run"} <= begun

        by_hand = case.deploy("--wait", "--poll", "0.2", "--json")
        assert by_hand.code == 0, by_hand.err
        assert by_hand.json["outcome"]["outcome"] == "nothing new"
        assert "data, code and configuration are those of run" in by_hand.out
        assert "snapshot_data" in by_hand.err

        case.write({"training": {**case.settings["training"], "epochs": 2}})
        stale = case.deploy("--dry-run", "--json").json
        assert stale["to_do"], "the pods compare their settings with those that were deployed"
        stopped = server.tick(schedule)
        wait_for(server)
        assert stopped is not None
        assert stopped.state == "FAILED"
        record = json.loads(store.get(f"runs/{stopped.key}/run.json"))
        assert record["exit_code"] == 2
        assert "is not the one that was deployed: it differs in training" in record["reasons"][0]
    assert len(PromotionLog(store).entries()) == 1
