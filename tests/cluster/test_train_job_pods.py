"""A TrainJob over the runtime that we ship: its pods are admitted, and policies know them."""

from __future__ import annotations

import copy
from typing import Any

from tests.cluster.installations import cluster_of
from tests.cluster.network import connects
from tests.cluster.schemas import check_manifest, check_mounts, check_pod_spec
from tests.cluster.train_job_pods import pod_of

# In the form in which Trainer's SDK sends one.
TRAIN_JOB: dict[str, Any] = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {"name": "flights-1", "labels": {"app.kubernetes.io/component": "train-node"}},
    "spec": {
        "runtimeRef": {"kind": "TrainingRuntime", "name": "torch-distributed"},
        "activeDeadlineSeconds": 3600,
        "trainer": {
            "numNodes": 2,
            "numProcPerNode": 1,
            "image": "registry.example.org/evertrain@sha256:" + "ab" * 32,
            "command": ["torchrun", "--nnodes=2"],
            "resourcesPerNode": {
                "requests": {"cpu": "4", "memory": "16Gi"},
                "limits": {"memory": "16Gi", "nvidia.com/gpu": "1"},
            },
            "env": [{"name": "EVERTRAIN_HOME", "value": "/tmp/evertrain"}],
        },
        "runtimePatches": [
            {
                "manager": "trainer.kubeflow.org/kubeflow-sdk",
                "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [{
                    "name": "node",
                    "template": {"spec": {"template": {
                        "metadata": {"labels": {"evertrain/project": "flights"}},
                        "spec": {
                            "serviceAccountName": "evertrain-train-node",
                            "terminationGracePeriodSeconds": 60,
                            "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "50Gi"}}],
                            "containers": [{
                                "name": "node",
                                "volumeMounts": [{"name": "scratch", "mountPath": "/tmp"}],
                            }],
                        },
                    }}},
                }]}}},
            }
        ],
    },
}  # fmt: skip


def runtime() -> dict[str, Any]:
    (found,) = cluster_of("+train-jobs").of("TrainingRuntime").values()
    return copy.deepcopy(found)


def test_the_train_job_is_one_and_names_the_runtime() -> None:
    assert check_manifest(TRAIN_JOB) == []
    reference = TRAIN_JOB["spec"]["runtimeRef"]
    assert (runtime()["kind"], runtime()["metadata"]["name"]) == (
        reference["kind"],
        reference["name"],
    )


def test_its_pods_are_admitted_with_the_sizes_that_were_asked_for() -> None:
    pod = pod_of(TRAIN_JOB, runtime())
    assert [*check_pod_spec(pod.spec), *check_mounts(pod.spec)] == []
    (node,) = pod.spec["containers"]
    assert node["image"] == TRAIN_JOB["spec"]["trainer"]["image"]
    assert node["resources"]["limits"] == {"memory": "16Gi", "nvidia.com/gpu": "1"}
    assert {"name": "scratch", "emptyDir": {"sizeLimit": "50Gi"}} in pod.spec["volumes"]
    assert sorted(mount["mountPath"] for mount in node["volumeMounts"]) == ["/dev/shm", "/tmp"]
    assert pod.spec["terminationGracePeriodSeconds"] == 60


def test_trainers_own_runtime_would_be_refused_here() -> None:
    """It has no security context (kubeflow/trainer, manifests/base/runtimes)."""
    theirs = runtime()
    pod = theirs["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    pod["spec"] = {"containers": [{"name": "node", "image": "pytorch/pytorch:2.7.1"}]}
    found = " ".join(check_pod_spec(pod_of(TRAIN_JOB, theirs).spec))
    assert "runAsNonRoot is not true" in found


def test_its_pods_reach_each_other_the_object_store_and_mlflow() -> None:
    cluster = cluster_of("local")
    node = pod_of(TRAIN_JOB, runtime()).labels
    others = {pod.labels["app.kubernetes.io/component"]: pod.labels for _, pod in cluster.pods()}
    assert connects(cluster.documents, node, node, 29500)
    assert connects(cluster.documents, node, others["s3"], 8333)
    assert connects(cluster.documents, node, others["mlflow"], 5000)
    assert not connects(cluster.documents, node, others["postgres"], 5432)
