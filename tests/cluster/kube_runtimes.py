"""The runtime that Kubeflow Trainer ships for torch, and others like it.

After `manifests/base/runtimes/torch_distributed.yaml` of kubeflow/trainer.
"""

from __future__ import annotations

from tests.cluster.kube_admission import ANCESTOR
from tests.cluster.kube_store import Content

_CONTAINER = {"name": "node", "image": "pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime"}


def torch_runtime(
    name: str,
    *,
    job: Content | None = None,
    pod: Content | None = None,
    failure_policy: Content | None = None,
) -> Content:
    """A runtime for torch.

    Args:
        job: More of the Job's spec, such as `{"backoffLimit": 0}`.
        pod: More of the pods' spec, such as `{"restartPolicy": "Never"}`.
        failure_policy: Of the JobSet, such as `{"maxRestarts": 2}`.
    """
    template = {"spec": {"containers": [dict(_CONTAINER)], **(pod or {})}}
    node = {
        "name": "node",
        "template": {
            "metadata": {"labels": {ANCESTOR: "trainer"}},
            "spec": {**(job or {}), "template": template},
        },
    }
    policy = {"failurePolicy": failure_policy} if failure_policy is not None else {}
    return {
        "metadata": {"name": name, "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            "template": {"spec": {"replicatedJobs": [node], **policy}},
        },
    }
