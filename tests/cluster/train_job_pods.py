"""The pods that Kubeflow Trainer makes of a TrainJob, to be checked offline.

    pod = pod_of(train_job, runtime)
    assert check_pod_spec(pod.spec) == []

Trainer 2.3 merges a TrainJob's patches into its runtime as Kubernetes merges a strategic patch:
lists whose items have a key by that key, others are replaced; then `spec.trainer` into `node`.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from tests.cluster.pod_specs import PodTemplate

Document = dict[str, Any]

# By the patchMergeKey of Kubernetes' types.
_KEYS = {
    "replicatedJobs": "name",
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "volumeMounts": "mountPath",
}


def pod_of(train_job: Document, runtime: Document) -> PodTemplate:
    """The pod of each node: the runtime's, patched by the TrainJob."""
    spec = deepcopy(runtime["spec"])
    for patch in train_job["spec"].get("runtimePatches", []):
        spec = merged(spec, patch.get("trainingRuntimeSpec", {}))
    (job,) = [each for each in spec["template"]["spec"]["replicatedJobs"] if each["name"] == "node"]
    template = job["template"]["spec"]["template"]
    (node,) = [each for each in template["spec"]["containers"] if each["name"] == "node"]
    trainer = train_job["spec"].get("trainer", {})
    for key in ("image", "command", "args"):
        if key in trainer:
            node[key] = trainer[key]
    if "resourcesPerNode" in trainer:
        node["resources"] = trainer["resourcesPerNode"]
    node["env"] = _merged_list("env", node.get("env", []), trainer.get("env", []))
    labels = (template.get("metadata") or {}).get("labels") or {}
    return PodTemplate("node", labels, template["spec"])


def merged(old: Document, patch: Document) -> Document:
    """A strategic merge of two documents."""
    found = dict(old)
    for key, value in patch.items():
        before = found.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            found[key] = merged(before, value)
        elif isinstance(value, list) and isinstance(before, list):
            found[key] = _merged_list(key, before, value)
        else:
            found[key] = value
    return found


def _merged_list(name: str, old: list[Any], patch: list[Any]) -> list[Any]:
    key = _KEYS.get(name)
    if key is None:
        return patch
    found = {each[key]: each for each in old}
    for each in patch:
        found[each[key]] = merged(found.get(each[key], {}), each)
    return list(found.values())
