"""Is a manifest, or a pod's spec, what Kubernetes would take? Offline and strict.

    check_manifest(document)            -> problems of any document that is applied
    check_pod_spec(spec)                -> problems of a pod's spec, wherever it comes from

Both give sentences; an empty list is a pass. A pod is held against the schema of the newest
Kubernetes that `kubernetes-validate` has, with unknown keys refused; against itself, where a name
refers to something in it; against the Pod Security Standard `restricted`. Every container asks for
CPU and memory and has a limit of memory (one of CPU only throttles); its image has a digest, or a
tag that is not latest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import jsonschema
import kubernetes_validate

from tests.cluster import crd_schemas
from tests.cluster.pod_security import containers, refused
from tests.cluster.pod_specs import CHOSEN_ELSEWHERE, templates

Document = dict[str, Any]

VERSION = kubernetes_validate.latest_version()
# Kubernetes' own grammar of names, labels and quantities, which its schemas leave to the server.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_LABEL_KEY = re.compile(
    r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?")
_QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei|e[0-9]+)?")
_IMAGE = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9._:/-]*?)(:(?P<tag>[A-Za-z0-9_][\w.-]{0,127}))?"
    r"(@sha256:(?P<digest>[0-9a-f]{64}))?"
)


def check_manifest(document: Document) -> list[str]:
    """Problems of one document; those of the pods that it leads to included."""
    kind, api_version = document.get("kind"), document.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(api_version, str):
        return ["no kind or no apiVersion"]
    found = [*_of_the_schema(document, api_version, kind), *_of_metadata(document)]
    if found:
        return found  # what follows relies on the form
    for template in templates(document):
        inner = check_pod_spec(template.spec)
        inner += [f"label {text}" for text in _labels(template.labels)]
        found += [f"{template.where}: {text}" for text in inner]
    for resource in _made_by_a_sensor(document):
        found += [f"trigger: {text}" for text in check_manifest(resource)]
    if kind in ("Deployment", "StatefulSet"):
        labels = document["spec"]["template"]["metadata"]["labels"].items()
        if not document["spec"]["selector"]["matchLabels"].items() <= labels:
            found.append("spec.selector does not match the labels of the template")
    return found


def check_pod_spec(spec: Document, restricted: bool = True, *, resources: bool = True) -> list[str]:
    """Problems of a pod's spec.

    Args:
        spec: A PodSpec, as a dict with Kubernetes' own keys.
        restricted: Hold it against the Pod Security Standard as well.
        resources: Ask every container for requests of CPU and memory and a limit of memory.
    """
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}
    found = list(_of_the_schema(pod, "v1", "Pod"))
    if found:
        return found
    found += _of_references(spec)
    for where, container in containers(spec):
        found += [f"{where}: {text}" for text in _of_an_image(container["image"])]
        found += [f"{where}: {text}" for text in _of_quantities(container.get("resources") or {})]
        if resources:
            found += [f"{where}: {text}" for text in _of_resources(container)]
    return found + (refused(spec) if restricted else [])


def _of_the_schema(document: Document, api_version: str, kind: str) -> Iterator[str]:
    ours = crd_schemas.of(api_version, kind)
    if ours is not None:
        validator = jsonschema.Draft202012Validator(ours)
        yield from (_sentence(error) for error in validator.iter_errors(document))
        return
    group = api_version.rpartition("/")[0]
    # kubernetes-validate reads a group's first word only: apps.example.com would pass as apps
    if "." in group and not group.endswith(".k8s.io"):
        yield f"{api_version} {kind}: no schema is known"
        return
    yield from _of_kubernetes(json.dumps(document, sort_keys=True))


@lru_cache(maxsize=1024)  # the schemas are read anew each time, and overlays share most documents
def _of_kubernetes(document: str) -> tuple[str, ...]:
    given = json.loads(document)
    try:
        kubernetes_validate.validate(given, VERSION, strict=True)
    except kubernetes_validate.SchemaNotFoundError:
        return (f"{given['apiVersion']} {given['kind']}: Kubernetes {VERSION} has no such kind",)
    except kubernetes_validate.ValidationError as error:
        return (_sentence(error),)
    return ()


def _sentence(error: jsonschema.ValidationError) -> str:
    path = ".".join(str(part) for part in error.absolute_path)
    return f"{path or 'document'}: {error.message}"[:500]


def _of_metadata(document: Document) -> Iterator[str]:
    metadata = document.get("metadata") or {}
    name = metadata.get("name", metadata.get("generateName", "").rstrip("-"))
    if not _NAME.fullmatch(name):
        yield f"metadata.name: {name!r} is no name"
    for text in _labels(metadata.get("labels") or {}):
        yield f"metadata.labels: {text}"


def _labels(labels: dict[str, str]) -> Iterator[str]:
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key):
            yield f"{key!r} is no key of a label"
        if not _LABEL.fullmatch(value):
            yield f"{key}: {value!r} is no value of a label"


def _made_by_a_sensor(document: Document) -> Iterator[Document]:
    if document["kind"] == "Sensor":
        for trigger in document["spec"]["triggers"]:
            yield trigger["template"]["k8s"]["source"]["resource"]


def _of_references(spec: Document) -> Iterator[str]:
    """Names inside a pod that lead nowhere, or that two things have."""
    volumes = [each["name"] for each in spec.get("volumes") or []]
    names = [container["name"] for _, container in containers(spec)]
    for kind, given in (("volume", volumes), ("container", names)):
        for name in sorted({each for each in given if given.count(each) > 1}):
            yield f"two have the name of the {kind} {name}"
    for where, container in containers(spec):
        ports = {port.get("name") for port in container.get("ports") or []}
        for port in sorted(filter(None, ports)):
            if not _PORT_NAME.fullmatch(port):
                yield f"{where}: {port!r} is no name of a port"
        for probe in ("liveness", "readiness", "startup"):
            handler = container.get(f"{probe}Probe") or {}
            for kind in ("httpGet", "tcpSocket"):
                asked = (handler.get(kind) or {}).get("port")
                if isinstance(asked, str) and asked not in ports:
                    yield f"{where}: the {probe} probe asks the port {asked}, which it has not"
        paths = [mount["mountPath"] for mount in container.get("volumeMounts") or []]
        if len(set(paths)) < len(paths):
            yield f"{where}: two volumes are mounted at one path"
        variables = [each["name"] for each in container.get("env") or []]
        for name in sorted({each for each in variables if variables.count(each) > 1}):
            yield f"{where}: the variable {name} is given twice"


def check_mounts(spec: Document, *, claims: tuple[str, ...] = ()) -> list[str]:
    """Mounts of volumes that the pod has not; `claims`: those of a StatefulSet's templates."""
    volumes = {*claims, *(each["name"] for each in spec.get("volumes") or [])}
    return [
        f"{where}: mounts {mount['name']}, which is no volume of the pod"
        for where, container in containers(spec)
        for mount in container.get("volumeMounts") or []
        if mount["name"] not in volumes
    ]


def _of_an_image(image: str) -> Iterator[str]:
    match = _IMAGE.fullmatch(image)
    if match is None:
        yield f"{image!r} is no name of an image"
    elif not match["digest"] and match["tag"] in (None, "latest"):
        yield f"image {image}: neither a digest nor a tag that means one version"


def _of_quantities(given: Document) -> Iterator[str]:
    for kind in ("requests", "limits"):
        for name, quantity in (given.get(kind) or {}).items():
            if not _QUANTITY.fullmatch(str(quantity)):
                yield f"{kind}.{name}: {quantity!r} is no quantity"


def _of_resources(container: Document) -> Iterator[str]:
    if container["image"] == CHOSEN_ELSEWHERE and "resources" not in container:
        yield "no resources"
        return
    given = container.get("resources") or {}
    requests, limits = given.get("requests") or {}, given.get("limits") or {}
    for name in ("cpu", "memory"):
        if name not in requests:
            yield f"no request of {name}"
    if "memory" not in limits:
        yield "no limit of memory"
