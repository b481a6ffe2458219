"""The pods that a manifest leads to: its own templates, and those that a controller makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

Document = dict[str, Any]

# Stands for an image that the controller of a custom resource chooses.
CHOSEN_ELSEWHERE = "chosen-by-the-controller:0"


class PodTemplate(NamedTuple):
    """A pod to be: where it stands in the manifest, its labels, its spec.

    `ours` is false where a controller adds to the spec, so that names cannot be followed in it.
    """

    where: str
    labels: dict[str, str]
    spec: Document
    ours: bool = True


def templates(document: Document) -> Iterator[PodTemplate]:
    """Every pod template of a document; none for a kind that makes no pods."""
    kind, spec = document.get("kind"), document.get("spec") or {}
    if kind == "Pod":
        yield PodTemplate("spec", (document.get("metadata") or {}).get("labels") or {}, spec)
    elif kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"):
        yield _template(spec["template"], "spec.template")
    elif kind == "CronJob":
        yield _template(spec["jobTemplate"]["spec"]["template"], "spec.jobTemplate.spec.template")
    elif kind in ("TrainingRuntime", "ClusterTrainingRuntime"):
        for job in spec["template"]["spec"]["replicatedJobs"]:
            yield _template(job["template"]["spec"]["template"], f"replicatedJobs[{job['name']}]")
    elif kind in ("EventSource", "Sensor"):
        yield _of_argo(spec["template"], "spec.template")
        for trigger in spec.get("triggers", []):
            made = trigger["template"]["k8s"]["source"]["resource"]
            for inner in templates(made):
                yield inner._replace(where=f"trigger {trigger['template']['name']}: {inner.where}")
    elif kind == "EventBus":
        yield _of_bus(spec["jetstream"])


def _template(template: Document, where: str) -> PodTemplate:
    labels = (template.get("metadata") or {}).get("labels") or {}
    return PodTemplate(where, labels, template["spec"])


def _of_argo(template: Document, where: str) -> PodTemplate:
    known = ("serviceAccountName", "securityContext", "volumes", "nodeSelector", "tolerations")
    spec = {key: template[key] for key in known if key in template}
    container = {"name": "main", "image": CHOSEN_ELSEWHERE, **template.get("container", {})}
    labels = (template.get("metadata") or {}).get("labels") or {}
    return PodTemplate(where, labels, {**spec, "containers": [container]}, ours=False)


def _of_bus(bus: Document) -> PodTemplate:
    parts = ("containerTemplate", "reloaderContainerTemplate", "metricsContainerTemplate")
    made = [
        {"name": part.removesuffix("Template").lower(), "image": CHOSEN_ELSEWHERE, **bus[part]}
        if part in bus
        else {"name": part.lower(), "image": CHOSEN_ELSEWHERE}
        for part in parts
    ]
    spec = {"securityContext": bus.get("securityContext", {}), "containers": made}
    labels = (bus.get("metadata") or {}).get("labels") or {}
    return PodTemplate("spec.jetstream", labels, spec, ours=False)
