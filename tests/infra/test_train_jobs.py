"""TrainJobs by the stock SDK over HTTP: what is sent, sent once, and what comes back."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import kubernetes_validate
import pytest

from infra.errors import OutsideError, Refused
from infra.trainer.api import TrainerApi
from infra.trainer.jobs import TrainJobs
from tests.cluster.conftest import kubernetes_server as kubernetes_server
from tests.cluster.faults import answer, hang, lost_reply, reset
from tests.cluster.kube_store import QUOTAS, SECRETS
from tests.cluster.kubernetes_server import KubernetesServer, Subject
from tests.infra.trainer_samples import NAME, jobs_of, request

_JOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs"


def _created(server: KubernetesServer) -> int:
    return sum(r.method == "POST" and r.status == 201 for r in server.requests)


def test_each_node_gets_what_was_asked_for(kubernetes_server: KubernetesServer) -> None:
    secret = {"KEY": base64.b64encode(b"hidden").decode()}
    kubernetes_server.apply(
        SECRETS, {"metadata": {"name": "s3", "namespace": "default"}, "data": secret}
    )
    jobs = jobs_of(kubernetes_server)
    jobs.submit(
        request(
            secrets={"AWS_SECRET_ACCESS_KEY": ("s3", "KEY")},
            service_account="evertrain-run", pull_secrets=("registry",),
            node_selector={"pool": "gpu"}, scratch="20Gi", shared_memory="16Gi", deadline=3600,
            tolerations=({"key": "spot", "operator": "Exists", "effect": "NoSchedule"},),
            queueing={"kueue.x-k8s.io/queue-name": "team"}, stop_grace=90,
        )
    )  # fmt: skip
    kubernetes_server.until(lambda: len(kubernetes_server.handles(NAME)) == 2)
    job = kubernetes_server.trainjob(NAME)
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"
    assert job["spec"]["activeDeadlineSeconds"] == 3600
    kubernetes_server.until(lambda: all(h.environment for h in kubernetes_server.handles(NAME)))
    for number, handle in enumerate(kubernetes_server.handles(NAME)):
        pod, container = handle.pod, handle.container
        spec = pod["spec"]
        assert container["command"][:3] == ["python", "-m", "components.train_distributed.node"]
        assert container["resources"] == {
            "requests": {"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "4"},
            "limits": {"memory": "8Gi", "nvidia.com/gpu": "4"},  # CPU is never throttled
        }
        assert spec["terminationGracePeriodSeconds"] == 90
        assert spec["serviceAccountName"] == "evertrain-run"
        assert spec["nodeSelector"] == {"pool": "gpu"}
        assert spec["tolerations"][0]["key"] == "spot"
        assert {v["name"]: v["emptyDir"] for v in spec["volumes"]} == {
            "scratch": {"sizeLimit": "20Gi"},
            "shared-memory": {"medium": "Memory", "sizeLimit": "16Gi"},
        }
        mounts = {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
        assert mounts == {"scratch": "/tmp", "shared-memory": "/dev/shm"}
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert pod["metadata"]["labels"]["evertrain/run-key"] == "0123"
        env = handle.environment
        assert env["AWS_SECRET_ACCESS_KEY"] == "hidden"
        assert (env["PET_NODE_RANK"], env["PET_NPROC_PER_NODE"]) == (str(number), "3")
    assert "hidden" not in json.dumps(job)


def test_the_pods_are_valid_by_the_schema_and_as_restricted_as_pods_can_be(
    kubernetes_server: KubernetesServer,
) -> None:
    jobs_of(kubernetes_server).submit(
        request(
            secrets={"KEY": ("s3", "KEY")}, shared_memory="1Gi", scratch="1Gi",
            node_selector={"pool": "gpu"}, pull_secrets=("registry",),
            tolerations=({"key": "spot", "operator": "Exists", "tolerationSeconds": 30},),
        )
    )  # fmt: skip
    for pod in kubernetes_server.pods(NAME):
        kubernetes_validate.validate(
            {"apiVersion": "v1", "kind": "Pod", **{k: pod[k] for k in ("metadata", "spec")}},
            "1.33", strict=True,
        )  # fmt: skip
        of_pod, of_container = (
            pod["spec"]["securityContext"],
            pod["spec"]["containers"][0]["securityContext"],
        )
        assert of_pod["runAsNonRoot"] is True
        assert of_pod["seccompProfile"] == {"type": "RuntimeDefault"}
        assert of_container["allowPrivilegeEscalation"] is False
        assert of_container["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize(
    "fault", [lost_reply(), reset(), answer(500), answer(503), answer(429, retry_after=1)]
)
def test_a_job_is_made_once_whatever_becomes_of_the_answer(
    kubernetes_server: KubernetesServer, fault: object
) -> None:
    kubernetes_server.faults.add("POST", _JOBS, fault)  # type: ignore[arg-type]
    jobs_of(kubernetes_server).submit(request())
    assert _created(kubernetes_server) <= 1
    assert len(kubernetes_server.pods(NAME)) == 2


def test_whoever_asks_again_finds_the_job_and_nobody_takes_anothers(
    kubernetes_server: KubernetesServer,
) -> None:
    jobs_of(kubernetes_server).submit(request())
    jobs_of(kubernetes_server).submit(request())  # a step that was started again
    assert _created(kubernetes_server) == 1
    with pytest.raises(Refused, match=r"another TrainJob of this name \(one\)") as raised:
        jobs_of(kubernetes_server).submit(request(identity="two"))
    assert raised.value.exit_code == 2


@pytest.mark.timeout(60)
def test_a_server_that_never_answers_is_given_up(
    kubernetes_server: KubernetesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infra.trainer.api._TIMEOUT", (1.0, 0.3))
    kubernetes_server.faults.add("GET", f"{_JOBS}/*", hang(), times=None)
    with pytest.raises(OutsideError, match=r"cannot read TrainJob .* at http://127") as raised:
        jobs_of(kubernetes_server, patience=1.0).read(NAME)
    assert raised.value.exit_code == 3


def test_a_server_that_is_away_for_a_while_is_waited_for(
    kubernetes_server: KubernetesServer,
) -> None:
    kubernetes_server.faults.add("*", "*", reset(), times=4)
    jobs_of(kubernetes_server).submit(request())
    assert _created(kubernetes_server) == 1


def test_what_the_cluster_refuses_is_said_with_what_to_do(
    kubernetes_server: KubernetesServer,
) -> None:
    jobs = jobs_of(kubernetes_server)
    with pytest.raises(Refused, match="no runtime 'torch-elsewhere'") as raised:
        jobs.submit(request(runtime="torch-elsewhere"))
    assert "cluster.train_job.runtime" in raised.value.hint
    with pytest.raises(Refused, match="must not have reserved envs") as raised:
        jobs.submit(request(environment={"PET_NNODES": "3"}))
    assert "role" not in raised.value.hint
    with pytest.raises(Refused, match="422"):
        jobs.submit(request(name="Train_Small"))
    kubernetes_server.apply(
        QUOTAS,
        {
            "metadata": {"name": "few", "namespace": "default"},
            "spec": {"hard": {"count/trainjobs.trainer.kubeflow.org": "0"}},
        },
    )
    with pytest.raises(OutsideError, match="exceeded quota: few") as full:
        jobs.submit(request())
    assert full.value.exit_code == 3


def test_rights_that_are_missing_are_named(kubernetes_server: KubernetesServer) -> None:
    reader = Subject(
        "system:serviceaccount:default:evertrain-run",
        ({"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]},),
    )
    kubernetes_server.api.tokens = {"known": reader}
    with pytest.raises(Refused, match="cannot create resource") as raised:
        jobs_of(kubernetes_server, "known").submit(request())
    assert "evertrain-run" in raised.value.hint
    with pytest.raises(OutsideError, match="not authorised"):
        jobs_of(kubernetes_server, "unknown").read(NAME)


def test_these_rights_are_enough(kubernetes_server: KubernetesServer) -> None:
    trainer = "trainer.kubeflow.org"
    step = Subject(
        "system:serviceaccount:default:evertrain-run",
        (
            {"apiGroups": [trainer], "resources": ["trainjobs"],
             "verbs": ["create", "get", "delete"]},
            {"apiGroups": [trainer], "resources": ["trainingruntimes", "clustertrainingruntimes"],
             "verbs": ["get"]},
            {"apiGroups": [""], "resources": ["pods", "events"], "verbs": ["list"]},
            {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
        ),
    )  # fmt: skip
    kubernetes_server.api.tokens = {"known": step}
    jobs = jobs_of(kubernetes_server, "known")
    jobs.submit(request())
    kubernetes_server.until(lambda: len(kubernetes_server.handles(NAME)) == 2)
    assert jobs.look(NAME, nodes=2).running <= 2
    assert jobs.remove(NAME, patience=20)
    assert {r.status for r in kubernetes_server.requests} <= {200, 201, 404}


def test_removing_a_job_ends_its_pods_in_good_order(kubernetes_server: KubernetesServer) -> None:
    jobs = jobs_of(kubernetes_server)
    jobs.submit(request(stop_grace=200))  # ten seconds here
    kubernetes_server.until(lambda: len(kubernetes_server.handles(NAME)) == 2)
    handles = kubernetes_server.handles(NAME)
    assert jobs.remove(NAME, patience=20)
    assert all(handle.stop.is_set() and not handle.kill.is_set() for handle in handles)
    assert kubernetes_server.pods(NAME) == []
    assert jobs.remove(NAME, patience=5), "what is not there is gone"


def test_pods_that_do_not_end_are_said_to_be_there(kubernetes_server: KubernetesServer) -> None:
    stubborn = lambda handle: (handle.kill.wait(60), 137)[1]  # noqa: E731
    kubernetes_server.executor = stubborn
    jobs = jobs_of(kubernetes_server)
    jobs.submit(request(stop_grace=600))
    kubernetes_server.until(lambda: len(kubernetes_server.handles(NAME)) == 2)
    assert not jobs.remove(NAME, patience=1.5)


def test_without_a_cluster_in_reach_it_is_said_where_one_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(Refused, match="no way to a Kubernetes cluster") as raised:
        TrainJobs(TrainerApi())
    assert "KUBECONFIG" in raised.value.hint
