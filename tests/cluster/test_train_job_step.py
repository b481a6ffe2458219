"""train_distributed whose nodes are pods of a TrainJob, by the stock SDK, over HTTP and S3."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.faults import lost_reply, reset
from tests.cluster.kube_store import QUOTAS, RUNTIMES
from tests.cluster.kubernetes_server import Trouble, torch_runtime
from tests.cluster.train_job_bench import JOB, RUN_KEY, Bench, bench
from tests.infra.loopback import S3Server
from tests.infra.seaweed import s3_running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
_JOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs"
# As docs/nodes.md gives it: what a retry cannot help ends the job, a lost machine costs no try.
_POLICY = {
    "rules": [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1, 2]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
    ]
}
_OUR_RUNTIME = torch_runtime(
    "torch-distributed",
    job={"backoffLimit": 20, "podFailurePolicy": _POLICY},
    pod={"restartPolicy": "Never"},
)
_OUR_RUNTIME["metadata"]["namespace"] = "default"
RUNS = [f"20250101T000000Z-000{number}" for number in range(9)]


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_running(tmp_path_factory.mktemp("weed")) as server:
        yield server


@pytest.fixture
def cluster(tmp_path: Path, s3: S3Server) -> Iterator[Bench]:
    with bench(tmp_path, s3, tmp_path.name) as made:
        yield made


@pytest.mark.smoke  # a training of two nodes that is interrupted in every way it can be
def test_nodes_that_are_lost_and_servers_that_are_away_cost_nothing_but_time(
    cluster: Bench,
) -> None:
    server = cluster.server
    server.apply(RUNTIMES, _OUR_RUNTIME)
    server.faults.add("POST", _JOBS, lost_reply())
    step = cluster.step(RUNS[0], "training.epochs=150")
    step.until(lambda: cluster.checkpoints() > 1)
    pod = server.pods(JOB)[1]
    assert server.lose_node(pod["spec"]["nodeName"])

    away = threading.Event()
    server.faults.script = lambda call: reset() if away.is_set() else None
    away.set()
    step.until(lambda: "nodes cannot be seen" in step.said)
    away.clear()
    step.kill()  # the step's own pod is lost as well

    again = cluster.step(RUNS[1], "training.epochs=150")
    record = again.end()
    assert record["status"] == "done", again.said
    figures = record["figures"]
    assert (figures["processes"], figures["nodes"]) == (2, 2)
    assert figures["resumed_from"] > 0
    assert "attempt 1 is under way" in again.said
    assert cluster.made() == 1
    assert "node 0: meets the others" in step.said + again.said, "the pods' log comes back"
    assert json.loads(again.training.read_text())["preprocessor"]
    assert server.pods(JOB) == []

    third = cluster.step(RUNS[2], "training.epochs=150")  # it was killed before it could report
    record = third.end()
    assert record["figures"] == figures | {"found_finished": True}
    assert third.training.read_text() == again.training.read_text()
    assert cluster.made() == 1, "what is finished is not trained again"


@pytest.mark.smoke
def test_a_step_that_is_cancelled_lets_its_nodes_save_and_goes_on_from_there(
    cluster: Bench,
) -> None:
    endless = ["training.epochs=100000", "training.evaluate_every=100000"]
    step = cluster.step(RUNS[0], *endless)
    step.until(lambda: len(cluster.server.handles(JOB)) == 2)
    handles = cluster.server.handles(JOB)
    step.until(lambda: any(each[1].startswith("step 200/") for h in handles for each in h.lines))
    step.signal(signal.SIGTERM)
    record = step.end()
    assert (record["status"], record["exit_code"]) == ("interrupted", 130)
    assert not any(handle.kill.is_set() for handle in handles)
    assert cluster.server.pods(JOB) == []
    said = json.loads(cluster.store.get(f"checkpoints/{RUN_KEY}/stopped.json"))
    assert said["step"] >= 200

    limit = f"training.stopping.max_steps={said['step'] + 50}"
    record = cluster.step(RUNS[1], *endless, limit).end()
    assert record["status"] == "done", record
    assert record["figures"]["resumed_from"] == said["step"]
    assert record["figures"]["steps"] == said["step"] + 50
    assert cluster.made() == 2


def test_an_image_that_cannot_be_pulled_ends_the_step_with_what_to_do(cluster: Bench) -> None:
    cluster.server.troubles.append(Trouble("image", "manifest unknown"))
    step = cluster.step(RUNS[0], "cluster.train_job.pending=2")
    record = step.end()
    assert (record["status"], record["exit_code"]) == ("failed", 3)
    assert "ImagePullBackOff" in record["reason"]
    assert "cluster.image" in record["hint"]
    assert cluster.server.pods(JOB) == []
    assert cluster.failure().kind == "OutsideError"


@pytest.mark.smoke
def test_a_quota_that_is_used_up_ends_the_step_with_what_it_says(cluster: Bench) -> None:
    cluster.server.apply(
        QUOTAS,
        {
            "metadata": {"name": "team", "namespace": "default"},
            "spec": {"hard": {"requests.memory": "1Gi"}},
        },
    )
    record = cluster.step(RUNS[0], "cluster.train_job.pending=3").end()
    assert record["exit_code"] == 3
    assert "exceeded quota: team, requested: requests.memory=" in record["reason"]


@pytest.mark.smoke
def test_what_a_node_fails_with_is_what_the_step_fails_with(cluster: Bench) -> None:
    task = cluster.project / "task.py"
    task.write_text(task.read_text().replace("return self.layers(", "return self.layers[5]("))
    step = cluster.step(RUNS[0])
    record = step.end()
    assert (record["status"], record["exit_code"]) == ("failed", 1)
    assert "IndexError" in record["reason"]
    assert "Traceback" in step.said, "the pod's own last words"
    assert cluster.server.pods(JOB) == []


def test_a_server_that_refuses_the_step_is_no_training_that_failed(cluster: Bench) -> None:
    step = cluster.step(RUNS[0], "cluster.train_job.runtime=absent")
    record = step.end()
    assert (record["status"], record["exit_code"]) == ("failed", 2)
    assert "no runtime 'absent'" in record["reason"]
    assert cluster.failure() is None, "the attempt is begun by whoever comes next"
