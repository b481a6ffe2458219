"""The pods that Kubeflow Pipelines makes of a compiled pipeline, to be checked offline.

    for step, pod in pods_of(text).items():
        assert check_pod_spec(pod.spec) == []

Follows KFP 2.17's backend: `backend/src/v2/driver/{driver,k8s}.go` (what a task's settings become)
and `backend/src/v2/compiler/argocompiler/{container,security_context}.go` (what every pod has).
Left out is what the cluster's administrator decides: Argo's own containers and Kubeflow's launcher.
A setting that is not known here is an error, lest it go unchecked.
"""

from __future__ import annotations

from typing import Any

from tests.cluster.pod_specs import PodTemplate
from tests.cluster.rendering import documents

Document = dict[str, Any]

# The volumes of every executor's pod, and where they are mounted.
_KUBEFLOWS = {
    "kfp-launcher": "/kfp-launcher",
    "gcs-scratch": "/gcs",
    "s3-scratch": "/s3",
    "minio-scratch": "/minio",
    "dot-local-scratch": "/.local",
    "dot-cache-scratch": "/.cache",
    "dot-config-scratch": "/.config",
}
_RESOURCES = {
    "resourceCpuRequest": ("requests", "cpu"),
    "resourceCpuLimit": ("limits", "cpu"),
    "resourceMemoryRequest": ("requests", "memory"),
    "resourceMemoryLimit": ("limits", "memory"),
}
# The same as numbers, for older backends.
_OLDER = {"cpuRequest", "cpuLimit", "memoryRequest", "memoryLimit", "accelerator"}


def pods_of(text: str) -> dict[str, PodTemplate]:
    """The pod of each executor of a compiled pipeline (IR YAML with its platform's settings).

    Raises:
        KeyError: A setting that this does not know.
    """
    pipeline, *platforms = documents(text)
    settings: Document = {}
    for each in platforms:
        settings |= each["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    found = {}
    for name, executor in pipeline["deploymentSpec"]["executors"].items():
        step = name.removeprefix("exec-").replace("-", "_")
        found[step] = _pod(executor["container"], dict(settings.get(name, {})))
    return found


def _pod(container: Document, settings: Document) -> PodTemplate:
    main = {
        "name": "main",
        "image": container["image"],
        "command": ["/kfp-launcher/launch"],
        "args": [*container["command"], *container.get("args", [])],
        "env": [*_own_variables(), *container.get("env", [])],
        "resources": _resources(container.get("resources", {})),
        "volumeMounts": [{"name": n, "mountPath": path} for n, path in _KUBEFLOWS.items()],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    spec: Document = {
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [main],
        "volumes": [{"name": name, "emptyDir": {}} for name in _KUBEFLOWS],
    }
    labels = {"workflows.argoproj.io/workflow": "run", "pipeline/runid": "0"}
    metadata = settings.pop("podMetadata", {})
    labels |= metadata.pop("labels", {})
    for volume in settings.pop("emptyDirMounts", []):
        kind = {"medium": volume.get("medium", ""), "sizeLimit": volume.get("sizeLimit", "0")}
        main["volumeMounts"].append(
            {"name": volume["volumeName"], "mountPath": volume["mountPath"]}
        )
        spec["volumes"].append({"name": volume["volumeName"], "emptyDir": kind})
    main["env"] += _variables(settings)
    context = settings.pop("securityContext", {})
    for key in ("runAsUser", "runAsGroup"):
        if key in context:
            main["securityContext"][key] = int(context.pop(key))
    if "runAsNonRoot" in context:
        main["securityContext"]["runAsNonRoot"] = context.pop("runAsNonRoot")
    _scheduling(settings, spec, main)
    for rest in (settings, metadata, context):
        if rest:
            raise KeyError(f"the setting {sorted(rest)[0]!r} of a step's pod is not known here")
    return PodTemplate("pod", labels, spec)


def _own_variables() -> list[Document]:
    paths = {"KFP_POD_NAME": "metadata.name", "KFP_POD_UID": "metadata.uid"}
    return [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for name, path in paths.items()
    ]


def _resources(given: Document) -> Document:
    found: Document = {"requests": {}, "limits": {}}
    for key, value in given.items():
        if key in _RESOURCES:
            kind, name = _RESOURCES[key]
            found[kind][name] = value
        elif key not in _OLDER:
            raise KeyError(f"the resource {key!r} is not known here")
    accelerator = given.get("accelerator", {})
    if accelerator:
        found["limits"][accelerator["resourceType"]] = accelerator["resourceCount"]
    return found


def _variables(settings: Document) -> list[Document]:
    found: list[Document] = [
        {"name": each["name"], "valueFrom": {"fieldRef": {"fieldPath": each["fieldPath"]}}}
        for each in settings.pop("fieldPathAsEnv", [])
    ]
    for secret in settings.pop("secretAsEnv", []):
        for pair in secret["keyToEnv"]:
            reference = {"name": secret["secretName"], "key": pair["secretKey"]}
            if "optional" in secret:
                reference["optional"] = secret["optional"]
            found.append({"name": pair["envVar"], "valueFrom": {"secretKeyRef": reference}})
    return found


def _scheduling(settings: Document, spec: Document, main: Document) -> None:
    if "imagePullPolicy" in settings:
        main["imagePullPolicy"] = settings.pop("imagePullPolicy")
    pull = settings.pop("imagePullSecret", [])
    spec["imagePullSecrets"] = [{"name": each["secretName"]} for each in pull]
    spec["nodeSelector"] = settings.pop("nodeSelector", {}).get("labels", {})
    spec["tolerations"] = [
        each | ({"tolerationSeconds": int(seconds)} if seconds else {})
        for each, seconds in (
            (each, each.pop("tolerationSeconds", None)) for each in settings.pop("tolerations", [])
        )
    ]
    if "activeDeadlineSeconds" in settings:
        spec["activeDeadlineSeconds"] = int(settings.pop("activeDeadlineSeconds"))
