"""The machinery of the API through the stock `kubernetes` client: objects, selectors, watches."""

from __future__ import annotations

import json
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from kubernetes import client, watch

from tests.cluster.faults import answer, lost_reply
from tests.cluster.kube_store import PODS
from tests.cluster.kubernetes_server import KubernetesServer, Subject, exits_with
from tests.cluster.trainjob_samples import (
    GROUP,
    PLURAL,
    TrainJobs,
    condition,
    manifest,
    phases,
    refused,
)


@pytest.fixture
def trainjobs(
    kubernetes_server: KubernetesServer, kubernetes_client: Callable[..., Any]
) -> TrainJobs:
    return TrainJobs(kubernetes_client(kubernetes_server))


@pytest.fixture
def core(kubernetes_server: KubernetesServer, kubernetes_client: Callable[..., Any]) -> Any:
    return client.CoreV1Api(kubernetes_client(kubernetes_server))


def test_versions_are_checked_before_a_write(trainjobs: TrainJobs) -> None:
    first = trainjobs.create(manifest(suspend=True))
    trainjobs.patch({"metadata": {"labels": {"a": "1"}}})
    first["metadata"]["labels"] = {"a": "2"}
    code, reason, message = refused(lambda: trainjobs.replace(first))
    assert (code, reason) == (409, "Conflict")
    assert message.startswith('Operation cannot be fulfilled on trainjobs.trainer.kubeflow.org "jo')
    newest = trainjobs.get()
    newest["metadata"]["labels"] = {"a": "3"}
    assert trainjobs.replace(newest)["metadata"]["labels"] == {"a": "3"}


def test_names_are_generated_taken_and_missed(trainjobs: TrainJobs) -> None:
    content = manifest(suspend=True)
    content["metadata"] = {"generateName": "run-"}
    names = {trainjobs.create(content)["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("run-") and len(name) == 9 for name in names)
    trainjobs.create(manifest())
    assert refused(lambda: trainjobs.create(manifest())) == (
        409, "AlreadyExists", 'trainjobs.trainer.kubeflow.org "job-a" already exists',
    )  # fmt: skip
    assert refused(lambda: trainjobs.get("job-b")) == (
        404, "NotFound", 'trainjobs.trainer.kubeflow.org "job-b" not found',
    )  # fmt: skip


@pytest.mark.parametrize(
    ("content", "code", "complaint"),
    [
        (manifest("Job-A"), 422, 'metadata.name: Invalid value: "Job-A": a lowercase RFC 1123'),
        (manifest("1-job"), 422, "metadata.name must match RFC 1035 DNS label format"),
        (manifest("j" * 64), 422, "metadata.name must be no more than 63 characters"),
        (manifest(runtimeRef={}), 422, "spec.runtimeRef.name: Required value"),
        (manifest(trainer={"numNodes": "two"}), 422, 'must be of type integer: "string"'),
        (manifest(activeDeadlineSeconds=0), 422, "should be greater than or equal to 1"),
        (manifest(managedBy="me"), 422, "spec.managedBy: Invalid value"),
        (manifest(runtimeRef={"name": "none"}), 403, '"none" not found: specified clusterTraining'),
        (
            manifest(trainer={"env": [{"name": "PET_NNODES", "value": "1"}]}),
            403,
            "must not have reserved envs, invalid envs configured: [PET_NNODES]",
        ),
    ],
)
def test_a_trainjob_that_cannot_be_is_refused(
    content: dict[str, Any], code: int, complaint: str, trainjobs: TrainJobs
) -> None:
    status, reason, message = refused(lambda: trainjobs.create(content))
    assert (status, reason) == (code, {422: "Invalid", 403: "Forbidden"}[code])
    assert complaint in message
    starts = {422: "TrainJob.trainer.kubeflow.org ", 403: 'admission webhook "validator.trainjob'}
    assert message.startswith(starts[code])


def test_what_is_immutable_stays(trainjobs: TrainJobs) -> None:
    trainjobs.create(manifest(trainer={"numNodes": 1}, unknown="dropped"))
    assert "unknown" not in trainjobs.get()["spec"]
    status, _, message = refused(lambda: trainjobs.patch({"spec": {"trainer": {"numNodes": 2}}}))
    assert (status, message) == (
        422, 'TrainJob.trainer.kubeflow.org "job-a" is invalid: spec.trainer: Invalid value: '
        '"object": field is immutable',
    )  # fmt: skip


def test_a_suspended_job_has_no_pods_until_it_is_resumed(
    kubernetes_server: KubernetesServer, trainjobs: TrainJobs
) -> None:
    trainjobs.create(manifest(suspend=True))
    assert condition(kubernetes_server) == ("Suspended", "Suspended", "TrainJob is suspended")
    assert kubernetes_server.pods("job-a") == []
    trainjobs.patch({"spec": {"suspend": False}})
    kubernetes_server.until(lambda: phases(kubernetes_server) == ["Running"])
    (resumed,) = kubernetes_server.trainjob("job-a")["status"]["conditions"]
    assert (resumed["status"], resumed["reason"]) == ("False", "Resumed")
    trainjobs.patch({"spec": {"suspend": True}})
    kubernetes_server.until(lambda: not kubernetes_server.pods("job-a"))
    trainjobs.patch({"spec": {"suspend": False}})
    kubernetes_server.until(lambda: phases(kubernetes_server) == ["Running"])
    kubernetes_server.end_job("job-a")
    kubernetes_server.until(lambda: condition(kubernetes_server)[0] == "Complete")


def test_lists_are_selected_and_come_in_pages(trainjobs: TrainJobs, core: Any) -> None:
    for number in range(5):
        content = manifest(f"job-{number}", suspend=True)
        content["metadata"]["labels"] = {"team": "ab"[number % 2], "number": str(number)}
        trainjobs.create(content)

    def named(**more: Any) -> list[str]:
        return [each["metadata"]["name"] for each in trainjobs.list(**more)["items"]]

    assert named(label_selector="team=a") == ["job-0", "job-2", "job-4"]
    assert named(label_selector="team in (b, c),number!=3") == ["job-1"]
    assert named(label_selector="!team") == []
    assert named(field_selector="metadata.name=job-3") == ["job-3"]
    first = trainjobs.list(limit=3)
    more = first["metadata"]["continue"]
    assert [len(first["items"]), named(limit=3, _continue=more)] == [3, ["job-3", "job-4"]]
    assert refused(lambda: named(field_selector="spec.suspend=true"))[0] == 400


def test_a_watch_tells_of_changes_from_a_version_on(
    kubernetes_server: KubernetesServer, trainjobs: TrainJobs
) -> None:
    since = trainjobs.list()["metadata"]["resourceVersion"]
    kubernetes_server.executor = exits_with(0)
    seen: list[tuple[str, str]] = []

    def follow() -> Iterator[Any]:
        return watch.Watch().stream(
            trainjobs.api.list_namespaced_custom_object, *trainjobs.where,
            resource_version=since, label_selector="team=a", timeout_seconds=20,
        )  # fmt: skip

    def read() -> None:
        for event in follow():
            conditions = event["object"].get("status", {}).get("conditions", [{"type": ""}])
            seen.append((event["type"], conditions[-1]["type"]))
            if event["type"] == "DELETED":
                return

    reader = threading.Thread(target=read)
    reader.start()
    content = manifest()
    content["metadata"]["labels"] = {"team": "a"}
    trainjobs.create(manifest("job-b"))
    trainjobs.create(content)
    kubernetes_server.until(lambda: condition(kubernetes_server)[0] == "Complete")
    trainjobs.delete()
    reader.join(30)
    assert seen[0] == ("ADDED", "")
    assert seen[-2:] == [("MODIFIED", "Complete"), ("DELETED", "Complete")]


def test_a_watch_from_a_version_that_is_forgotten_is_told_so(
    kubernetes_server: KubernetesServer, core: Any
) -> None:
    kubernetes_server.store.log = deque(kubernetes_server.store.log, maxlen=2)
    with pytest.raises(client.ApiException) as error:
        next(watch.Watch().stream(core.list_namespace, resource_version="1001", timeout_seconds=5))
    assert error.value.status == 410


def test_foreground_deletion_waits_for_the_pods(
    kubernetes_server: KubernetesServer, trainjobs: TrainJobs
) -> None:
    gone = threading.Event()

    def slowly(handle: Any) -> int:
        handle.stop.wait()
        gone.wait(30)
        return 0

    kubernetes_server.executor = slowly
    trainjobs.create(manifest())
    kubernetes_server.until(lambda: phases(kubernetes_server) == ["Running"])
    trainjobs.delete(propagation_policy="Foreground")
    going = trainjobs.get()["metadata"]
    assert going["finalizers"] == ["foregroundDeletion"]
    assert "deletionTimestamp" in going
    gone.set()
    kubernetes_server.until(lambda: not kubernetes_server.store.list(PODS))
    assert refused(trainjobs.get)[0] == 404


def test_who_may_do_what_is_as_in_a_role(kubernetes_client: Callable[..., Any]) -> None:
    rule = {
        "apiGroups": [GROUP], "resources": [PLURAL], "verbs": ["create", "get", "list"],
    }  # fmt: skip
    name = "system:serviceaccount:default:evertrain"
    with KubernetesServer(accounts={"token": Subject(name, (rule,))}, second=0.05) as server:
        assert refused(TrainJobs(kubernetes_client(server)).list)[:2] == (401, "Unauthorized")
        ours = TrainJobs(kubernetes_client(server, "token"))
        ours.create(manifest())
        assert refused(ours.delete) == (
            403, "Forbidden",
            f'trainjobs.trainer.kubeflow.org "job-a" is forbidden: User "{name}" cannot delete '
            f'resource "trainjobs" in API group "{GROUP}" in the namespace "default"',
        )  # fmt: skip
        pods = client.CoreV1Api(kubernetes_client(server, "token"))
        assert refused(lambda: pods.list_namespaced_pod("default"))[0] == 403


def test_logs_have_a_tail_and_times(kubernetes_server: KubernetesServer, core: Any) -> None:
    kubernetes_server.executor = exits_with(0, "one", "two", "three")
    TrainJobs(core.api_client).create(manifest())
    kubernetes_server.until(lambda: condition(kubernetes_server)[0] == "Complete")
    (pod,) = core.list_namespaced_pod("default", label_selector="job-name=job-a-node-0").items
    name = pod.metadata.name
    assert pod.status.container_statuses[0].state.terminated.exit_code == 0
    assert core.read_namespaced_pod_log(name, "default", tail_lines=2) == "two\nthree\n"
    stamped = core.read_namespaced_pod_log(name, "default", timestamps=True, tail_lines=1)
    assert stamped.split()[1] == "three"
    assert refused(lambda: core.read_namespaced_pod_log(name, "default", previous=True))[0] == 400
    events = core.list_namespaced_event(
        "default", field_selector=f"involvedObject.name={name},reason=Started"
    ).items
    assert [event.message for event in events] == ["Started container node"]


def test_faults_meet_these_clients_too(
    kubernetes_server: KubernetesServer, trainjobs: TrainJobs
) -> None:
    kubernetes_server.faults.add("POST", "*/trainjobs", lost_reply())
    kubernetes_server.faults.add("GET", "*/trainjobs/*", answer(429, retry_after=0))
    kubernetes_server.faults.add("GET", "*/trainjobs/*", answer(500), nth=2)
    with pytest.raises(Exception, match=r"reset|aborted"):
        trainjobs.create(manifest())
    assert refused(lambda: trainjobs.create(manifest()))[1] == "AlreadyExists"
    assert refused(trainjobs.get)[1] == "InternalError"  # urllib3 came again after the 429
    assert trainjobs.get()["metadata"]["name"] == "job-a"


def test_every_object_is_as_kubernetes_schemas_have_it(
    kubernetes_server: KubernetesServer, trainjobs: TrainJobs
) -> None:
    kubernetes_server.executor = exits_with(1)
    trainjobs.create(manifest(trainer={"numNodes": 2, "command": ["false"]}))
    kubernetes_server.until(
        lambda: condition(kubernetes_server)[0] == "Failed" and not kubernetes_server.pods("job-a")
    )
    seen = set()
    for change in list(kubernetes_server.store.log):
        if change.kind.group in ("", "batch"):
            kubernetes_validate.validate(change.content, "1.33", strict=True)
            seen.add(change.kind.kind)
    assert seen >= {"Pod", "Job", "Event", "Node", "Namespace", "ConfigMap"}


def test_kubectl_reads_it(kubernetes_server: KubernetesServer, tmp_path: Path) -> None:
    import shutil
    import sys

    program = shutil.which("kubectl", path=str(Path(sys.executable).parent))
    assert program is not None
    config = tmp_path / "config"
    config.write_text(json.dumps(kubernetes_server.kubeconfig()))
    (tmp_path / "job.json").write_text(json.dumps(manifest()))

    def kubectl(*words: str) -> str:
        done = subprocess.run(
            [program, f"--kubeconfig={config}", f"--cache-dir={tmp_path / 'cache'}", *words],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    created = kubectl("create", "--validate=false", "-f", str(tmp_path / "job.json"))
    assert created == "trainjob.trainer.kubeflow.org/job-a created\n"
    kubernetes_server.until(lambda: phases(kubernetes_server) == ["Running"])
    assert kubectl("get", "trainjobs", "-o", "name") == "trainjob.trainer.kubeflow.org/job-a\n"
    assert "job-a-node-0-0-" in kubectl("get", "pods")
    assert "deleted" in kubectl("delete", "trainjob", "job-a", "--wait=true", "--timeout=30s")
