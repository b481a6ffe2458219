"""What the API server does to a TrainJob before it is kept: types, defaults, rules, the webhook.

Rules: `trainjob_types.go` (CRD, 422), `trainjob_webhook.go` and the plugins Torch and JobSet of
kubeflow/trainer (the webhook's refusals are 403). Types: the models of `kubeflow_trainer_api`.
"""

from __future__ import annotations

import re
from typing import Any

from kubeflow_trainer_api import models
from pydantic import ValidationError

from tests.cluster.kube_errors import Kind, Wrong, bad_request, denied_by_webhook, invalid
from tests.cluster.kube_store import (
    CLUSTER_RUNTIMES,
    RUNTIMES,
    TRAINER,
    TRAINJOBS,
    Content,
    Store,
    now,
)

WEBHOOK = f"validator.trainjob.{TRAINER}"
ANCESTOR = f"{TRAINER}/trainjob-ancestor-step"
CONTROLLER = f"{TRAINER}/trainjob-controller"
RESERVED = {
    "PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT",
}  # fmt: skip
_IMMUTABLE = ("runtimeRef", "initializer", "trainer", "managedBy", "activeDeadlineSeconds")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_PLACES = {
    "TrainerV1alpha1TrainJob": "", "TrainerV1alpha1TrainJobSpec": "spec",
    "TrainerV1alpha1Trainer": "spec.trainer", "TrainerV1alpha1RuntimeRef": "spec.runtimeRef",
    "IoK8sApiCoreV1EnvVar": "spec.trainer.env",
    "IoK8sApiCoreV1ResourceRequirements": "spec.trainer.resourcesPerNode",
}  # fmt: skip
_TYPES = {
    "int_type": "integer", "string_type": "string", "bool_type": "boolean", "list_type": "array",
    "dict_type": "object", "model_type": "object", "model_attributes_type": "object",
}  # fmt: skip


def admitted(store: Store, new: Content, old: Content | None) -> Content:
    """A TrainJob as it will be kept.

    Raises:
        KubeError: 422 for what the definition refuses, 403 for what the webhook does.
    """
    name = new["metadata"].get("name") or new["metadata"].get("generateName", "")
    if not name:
        raise invalid(
            TRAINJOBS, "",
            [Wrong("metadata.name", "FieldValueRequired", "name or generateName is required")],
        )  # fmt: skip
    new = _typed(name, new)
    wrong = _wrong_names(new["metadata"]) + _wrong_values(new["spec"])
    _complete(new["spec"])
    if old is not None:
        wrong += [
            Wrong(f"spec.{each}", "FieldValueInvalid", "field is immutable", "object")
            for each in _IMMUTABLE
            if old["spec"].get(each) != new["spec"].get(each)
        ]
    if wrong:
        raise invalid(TRAINJOBS, name, wrong)
    refused = _refused_by_webhook(store, new, old)
    if refused:
        raise denied_by_webhook(WEBHOOK, refused)
    return new


def runtime_of(store: Store, job: Content) -> tuple[Kind, Content | None]:
    """The runtime that a TrainJob refers to; None if there is none."""
    told = job["spec"]["runtimeRef"]
    if told.get("kind") == "TrainingRuntime":
        return RUNTIMES, store.find(RUNTIMES, job["metadata"]["namespace"], told["name"])
    return CLUSTER_RUNTIMES, store.find(CLUSTER_RUNTIMES, "", told["name"])


def _typed(name: str, content: Content) -> Content:
    """Without the fields that the definition does not have; refuse those of another type."""
    if "spec" not in content:
        raise invalid(TRAINJOBS, name, [Wrong("spec.runtimeRef", "FieldValueRequired", "")])
    try:
        known = models.TrainerV1alpha1TrainJob.from_dict(content)
    except ValidationError as error:
        raise invalid(TRAINJOBS, name, _wrong_types(error)) from None
    except (ValueError, TypeError, AttributeError) as error:
        raise bad_request(f"TrainJob in version v1alpha1 cannot be handled: {error}") from None
    assert known is not None
    kept = _pruned(content, known.to_dict())
    kept["metadata"] = content["metadata"]
    return dict(kept)


def _pruned(content: Any, known: Any) -> Any:
    if isinstance(content, dict) and isinstance(known, dict):
        names = [name for name in content if name in known]
        return {name: _pruned(content[name], known[name]) for name in names}
    if isinstance(content, list) and isinstance(known, list) and len(content) == len(known):
        return [_pruned(each, other) for each, other in zip(content, known, strict=True)]
    return content


def _wrong_types(error: ValidationError) -> list[Wrong]:
    found = []
    for each in error.errors():
        path = ".".join(filter(None, (_PLACES.get(error.title, "spec"), *map(str, each["loc"]))))
        if each["type"] == "missing" or each["input"] is None:
            found.append(Wrong(path, "FieldValueRequired", ""))
            continue
        want, have = _TYPES.get(each["type"], each["type"]), _type_name(each["input"])
        detail = f'{path} in body must be of type {want}: "{have}"'
        found.append(Wrong(path, "FieldValueTypeInvalid", detail, have))
    return found


def _type_name(value: Any) -> str:
    names = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array"}
    return names.get(type(value), "object")


def _wrong_names(meta: Content) -> list[Wrong]:
    name = meta.get("name", "")
    if not name:
        return []
    if not _SUBDOMAIN.fullmatch(name) or len(name) > 253:
        return [
            Wrong(
                "metadata.name", "FieldValueInvalid",
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
                "characters, '-' or '.', and must start and end with an alphanumeric character "
                "(e.g. 'example.com', regex used for validation is "
                "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                name,
            )
        ]  # fmt: skip
    found = []
    if not _LABEL.fullmatch(name):
        found.append("metadata.name must match RFC 1035 DNS label format")
    if len(name) > 63:
        found.append("metadata.name must be no more than 63 characters")
    return [Wrong("<nil>", "FieldValueInvalid", each, "object") for each in found]


def _wrong_values(spec: Content) -> list[Wrong]:
    found = []
    if not spec.get("runtimeRef", {}).get("name"):
        found.append(
            Wrong(
                "spec.runtimeRef.name", "FieldValueInvalid",
                "spec.runtimeRef.name in body should be at least 1 chars long", "",
            )
        )  # fmt: skip
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and deadline < 1:
        path = "spec.activeDeadlineSeconds"
        detail = f"{path} in body should be greater than or equal to 1"
        found.append(Wrong(path, "FieldValueInvalid", detail, deadline))
    manager = spec.get("managedBy", CONTROLLER)
    if manager not in (CONTROLLER, "kueue.x-k8s.io/multikueue"):
        detail = f"ManagedBy must be {CONTROLLER} or kueue.x-k8s.io/multikueue if set"
        found.append(Wrong("spec.managedBy", "FieldValueInvalid", detail, manager))
    names: set[str] = set()
    for at, each in enumerate((spec.get("trainer") or {}).get("env") or []):
        if each["name"] in names:
            found.append(
                Wrong(f"spec.trainer.env[{at}]", "FieldValueDuplicate", "", {"name": each["name"]})
            )
        names.add(each["name"])
    return found


def _complete(spec: Content) -> None:
    spec.setdefault("suspend", False)
    spec.setdefault("managedBy", CONTROLLER)
    spec["runtimeRef"].setdefault("apiGroup", TRAINER)
    spec["runtimeRef"].setdefault("kind", "ClusterTrainingRuntime")
    for patch in spec.get("runtimePatches") or []:
        patch.setdefault("time", now())


def _refused_by_webhook(store: Store, new: Content, old: Content | None) -> list[Wrong]:
    spec, told = new["spec"], new["spec"]["runtimeRef"]
    if told["kind"] not in ("ClusterTrainingRuntime", "TrainingRuntime"):
        return [Wrong("spec.runtimeRef", "FieldValueInvalid", f"unsupported runtime: {told['kind']}.{told['apiGroup']}", told)]  # fmt: skip # noqa: E501
    kind, runtime = runtime_of(store, new)
    if runtime is None:
        kept = kind.kind[0].lower() + kind.kind[1:]
        detail = (
            f'{kind.qualified} "{told["name"]}" not found: specified {kept} must be created '
            "before the TrainJob is created"
        )
        return [Wrong("spec.RuntimeRef", "FieldValueInvalid", detail, told)]
    found = []
    env = (spec.get("trainer") or {}).get("env") or []
    reserved = sorted(RESERVED & {each["name"] for each in env})
    if reserved:
        detail = f"must not have reserved envs, invalid envs configured: [{' '.join(reserved)}]"
        found.append(Wrong("spec.trainer.env", "FieldValueInvalid", detail, env))
    found += _wrong_patches(spec.get("runtimePatches") or [], runtime)
    before = spec if old is None else old["spec"]
    suspended = before.get("suspend") or spec.get("suspend")
    if before.get("runtimePatches") != spec.get("runtimePatches") and not suspended:
        detail = "RuntimePatches can only be modified when the TrainJob is suspended"
        found.append(Wrong("spec.runtimePatches", "FieldValueForbidden", detail))
    return found


def _wrong_patches(patches: list[Content], runtime: Content) -> list[Wrong]:
    """Jobs and containers that the runtime has not; variables of containers that are reserved."""
    jobs = {each["name"]: each for each in runtime["spec"]["template"]["spec"]["replicatedJobs"]}
    found = []
    for patch in patches:
        template = (patch.get("trainingRuntimeSpec") or {}).get("template") or {}
        for job in (template.get("spec") or {}).get("replicatedJobs") or []:
            if job["name"] not in jobs:
                detail = "must not have targetJob that doesn't exist in the runtime job template"
                found.append(Wrong("spec.runtimePatches", "FieldValueInvalid", detail, patches))
                continue
            have = jobs[job["name"]]["template"]["spec"]["template"]["spec"]["containers"]
            names = {each["name"] for each in have}
            wanted = ((job.get("template") or {}).get("spec") or {}).get("template") or {}
            for container in (wanted.get("spec") or {}).get("containers") or []:
                detail = ""
                if container["name"] not in names:
                    detail = f"must not have container that doesn't exist in the runtime job {job['name']}"  # fmt: skip # noqa: E501
                elif container.get("env") and container["name"] == "node":
                    detail = "must not have envs for the dataset-initializer, model-initializer, node containers"  # fmt: skip # noqa: E501
                if detail:
                    found.append(Wrong("spec.runtimePatches", "FieldValueInvalid", detail, patches))
    return found
