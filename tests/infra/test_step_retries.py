"""Retries on a cluster: what is finished is not done again, and nothing is done twice.

Every start has an empty home: all it knows comes from S3, MLflow and Kubeflow's artifacts.
"""

from __future__ import annotations

import json
import signal
import uuid
from pathlib import Path

import pytest
from loopback import BUCKET, S3Server
from pod_steps import KILLED, RUN, Pods

from components.common.champion import PromotionLog
from components.common.layout import checkpoint_prefix, sha256_of
from components.common.records import STEPS
from infra.registry import Registry
from infra.s3 import S3Store
from infra.tracking import connect
from tests.small_project.command import make_project
from tests.small_project.splits import write_splits

pytestmark = [pytest.mark.slow, pytest.mark.smoke]


def _pods(folder: Path, s3: S3Server, tracking: str, *overrides: str) -> tuple[Pods, S3Store]:
    store = S3Store(bucket=BUCKET, prefix=uuid.uuid4().hex)
    project = make_project(folder / "project", 1, 2)
    values = {
        "project": str(project), "data": "", "store": store.uri, "force": False,
        "overrides": [f"tracking.uri={tracking}", *overrides],
    }  # fmt: skip
    return Pods(folder, values, dict(s3.environment)), store


def _content(folder: Path, name: str) -> dict[str, str]:
    """Hashes of an output's files."""
    whole = folder / name
    files = [whole] if whole.is_file() else [f for f in sorted(whole.rglob("*")) if f.is_file()]
    return {str(file.relative_to(folder)): sha256_of(file) for file in files}


@pytest.mark.timeout(600)
def test_every_step_that_is_killed_before_it_can_report_is_done_once(
    s3_environment: S3Server, mlflow_over_s3: str, tmp_path: Path
) -> None:
    model = f"small-{uuid.uuid4().hex[:8]}"  # the server is other tests' as well
    pods, store = _pods(tmp_path, s3_environment, mlflow_over_s3, f"name={model}")
    for step in STEPS:
        code, first, said = pods.start(step, kill=True)
        assert code == KILLED, f"{step}: {said}"
        code, second, said = pods.start(step)
        assert code == 0, f"{step}: {said}"
        for name in ("splits", "training", "baselines", "model"):
            if (second / name).exists():
                assert _content(second, name) == _content(first, name), step
    figures = json.loads(store.get(f"runs/{RUN}/train_distributed.json"))["figures"]
    assert figures["found_finished"] is True, "a training that has ended is not trained again"
    entries = PromotionLog(store).entries()
    assert [(entry.action, entry.version) for entry in entries] == [("promote", "1")]
    registry = Registry(uri=mlflow_over_s3, experiment=model)
    assert [version["version"] for version in registry.versions(model)] == ["1"]
    record = json.loads(store.get(f"runs/{RUN}/run.json"))
    assert (record["status"], record["verdict"]) == ("finished", "promote")
    assert {step["status"] for step in record["steps"]} == {"done"}


@pytest.mark.timeout(300)
def test_a_pod_that_is_told_to_go_saves_and_another_goes_on_with_its_figures(
    s3_environment: S3Server, tmp_path: Path
) -> None:
    nobody = "http://127.0.0.1:9"  # MLflow is away
    endless = ("training.epochs=100000", "training.evaluate_every=100000")
    pods, store = _pods(tmp_path, s3_environment, nobody, *endless)
    splits = write_splits(Path(pods.values["project"]), store)
    (tmp_path / "artifacts").mkdir()
    splits.rename(tmp_path / "artifacts" / "splits")
    key = pods.values["run_key"] = uuid.uuid4().hex
    process = pods.popen("train_distributed")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("step 200/"):
            break
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=30)[1]  # a pod's usual grace
    assert process.returncode == 130, said
    stopped = json.loads(store.get(f"{checkpoint_prefix(key)}/stopped.json"))
    assert stopped["step"] >= 200
    assert [info.key.startswith(f"spools/{key}.") for info in store.list("spools/")][:1] == [True]

    database = f"sqlite:///{tmp_path}/mlflow.db"  # it is back
    limit = f"training.stopping.max_steps={stopped['step'] + 50}"
    pods.values["overrides"] = [f"tracking.uri={database}", *endless, limit]
    code, _, said = pods.start("train_distributed")
    assert code == 0, said
    figures = json.loads(store.get(f"runs/{RUN}/train_distributed.json"))["figures"]
    assert figures["resumed_from"] == stopped["step"]
    client = connect(database)
    (run,) = client.search_runs([client.get_experiment_by_name("small").experiment_id])
    steps = [metric.step for metric in client.get_metric_history(run.info.run_id, "loss")]
    assert min(steps) == 5
    assert max(steps) == stopped["step"] + 50
    assert list(store.list("spools/")) == [], "what has arrived is kept no longer"
