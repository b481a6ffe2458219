"""Does every name in a set of manifests lead to something in it? A sentence each that does not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.cluster.pod_security import containers
from tests.cluster.pod_specs import PodTemplate, templates
from tests.cluster.schemas import check_mounts

Document = dict[str, Any]

# What Kubeflow puts on the pods of a run: Argo's label, on drivers and executors alike.
STEP_LABELS = {"workflows.argoproj.io/workflow": "continuous-training-x7k2p"}
_VARIABLE = re.compile(r"\$\(([A-Za-z_]\w*)\)")


@dataclass(frozen=True)
class Cluster:
    """A rendered overlay, and the secrets that its README asks a person to make (name to keys)."""

    documents: list[Document]
    secrets: dict[str, set[str]]

    def of(self, kind: str) -> dict[str, Document]:
        return {each["metadata"]["name"]: each for each in self.documents if each["kind"] == kind}

    def pods(self) -> list[tuple[str, PodTemplate]]:
        return [
            (f"{each['kind']} {each['metadata']['name']}", template)
            for each in self.documents
            for template in templates(each)
        ]

    def selected(self, selector: Document) -> list[PodTemplate]:
        """The pods that a label selector means, those of Kubeflow's steps among them."""
        steps = PodTemplate("steps", STEP_LABELS, {"containers": []}, ours=False)
        everyone = [steps, *(template for _, template in self.pods())]
        return [template for template in everyone if matches(selector, template.labels)]


def matches(selector: Document, labels: dict[str, str]) -> bool:
    wanted = (selector.get("matchLabels") or {}).items()
    if not wanted <= labels.items():
        return False
    for rule in selector.get("matchExpressions") or []:
        key, values = rule["key"], rule.get("values", [])
        fits = {
            "In": labels.get(key) in values,
            "NotIn": labels.get(key) not in values,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }
        if not fits[rule["operator"]]:
            return False
    return True


def dangling(cluster: Cluster) -> list[str]:
    """Every name that leads nowhere."""
    found = list(_of_services(cluster))
    for owner, template in cluster.pods():
        where = f"{owner}, {template.where}"
        found += [f"{where}: {text}" for text in _of_a_pod(cluster, owner, template)]
    for kind in ("RoleBinding",):
        for name, binding in cluster.of(kind).items():
            found += [f"{kind} {name}: {text}" for text in _of_a_binding(cluster, binding)]
    for name, budget in cluster.of("PodDisruptionBudget").items():
        if not cluster.selected(budget["spec"]["selector"]):
            found.append(f"PodDisruptionBudget {name} selects no pod")
    return found + list(_of_events(cluster))


def _of_services(cluster: Cluster) -> Iterator[str]:
    for name, service in cluster.of("Service").items():
        pods = cluster.selected({"matchLabels": service["spec"]["selector"]})
        if not pods:
            yield f"Service {name} selects no pod"
        for pod in pods:
            has = {p.get("name") for _, c in containers(pod.spec) for p in c.get("ports") or []}
            for port in service["spec"]["ports"]:
                if port["targetPort"] not in has:
                    yield f"Service {name}: {pod.where} has no port {port['targetPort']}"
    for name, monitor in cluster.of("ServiceMonitor").items():
        selector = monitor["spec"]["selector"]
        services = [
            each
            for each in cluster.of("Service").values()
            if matches(selector, each["metadata"]["labels"])
        ]
        if not services:
            yield f"ServiceMonitor {name} selects no service"
        for endpoint in monitor["spec"]["endpoints"]:
            for service in services:
                if endpoint["port"] not in {port["name"] for port in service["spec"]["ports"]}:
                    yield f"ServiceMonitor {name}: the service has no port {endpoint['port']}"


def _of_a_pod(cluster: Cluster, owner: str, template: PodTemplate) -> Iterator[str]:
    spec = template.spec
    account = spec.get("serviceAccountName")
    if account and account not in cluster.of("ServiceAccount"):
        yield f"no service account {account}"
    kind, _, name = owner.partition(" ")
    claims: tuple[str, ...] = ()
    if kind == "StatefulSet":
        owned = cluster.of(kind)[name]["spec"]
        claims = tuple(each["metadata"]["name"] for each in owned["volumeClaimTemplates"])
        if owned["serviceName"] not in cluster.of("Service"):
            yield f"no service {owned['serviceName']}"
    if template.ours:
        yield from check_mounts(spec, claims=claims)
    for volume in spec.get("volumes") or []:
        if "configMap" in volume:
            yield from _config_map(cluster, volume["configMap"]["name"])
        if "secret" in volume:
            yield from _secret(cluster, volume["secret"]["secretName"], None)
    for where, container in containers(spec):
        yield from (f"{where}: {text}" for text in _of_a_container(cluster, container))


def _of_a_container(cluster: Cluster, container: Document) -> Iterator[str]:
    variables: dict[str, str | None] = {}
    for source in container.get("envFrom") or []:
        if "configMapRef" in source:
            name = source["configMapRef"]["name"]
            yield from _config_map(cluster, name)
            variables |= (cluster.of("ConfigMap").get(name) or {}).get("data", {})
        else:
            name = source["secretRef"]["name"]
            yield from _secret(cluster, name, None)
            variables |= dict.fromkeys(cluster.secrets.get(name, ()))
    for variable in container.get("env") or []:
        variables[variable["name"]] = variable.get("value")
        chosen = (variable.get("valueFrom") or {}).get("secretKeyRef")
        if chosen:
            yield from _secret(cluster, chosen["name"], chosen["key"])
    words = [*container.get("command", []), *container.get("args", [])]
    for used in sorted({name for word in words for name in _VARIABLE.findall(word)}):
        if used not in variables:
            yield f"$({used}) is used and not given"
    for key, value in variables.items():
        address = urlsplit(value or "")
        if address.scheme in ("http", "https") and "." not in (address.hostname or "."):
            yield from (f"{key}: {text}" for text in _address(cluster, address.netloc))


def _address(cluster: Cluster, netloc: str) -> Iterator[str]:
    """An address without a dot is a service of this namespace."""
    host, _, port = netloc.partition(":")
    service = cluster.of("Service").get(host)
    if service is None or int(port) not in {each["port"] for each in service["spec"]["ports"]}:
        yield f"no service {host} with the port {port}"


def _config_map(cluster: Cluster, name: str) -> Iterator[str]:
    if name not in cluster.of("ConfigMap"):
        yield f"no ConfigMap {name}"


def _secret(cluster: Cluster, name: str, key: str | None) -> Iterator[str]:
    if name not in cluster.secrets:
        yield f"the secret {name} is not in the README's table"
    elif key is not None and key not in cluster.secrets[name]:
        yield f"the README's table gives the secret {name} no key {key}"


def _of_a_binding(cluster: Cluster, binding: Document) -> Iterator[str]:
    role = binding["roleRef"]
    if role["name"] not in cluster.of(role["kind"]):
        yield f"no {role['kind']} {role['name']}"
    for subject in binding["subjects"]:
        if subject["name"] not in cluster.of("ServiceAccount"):
            yield f"no service account {subject['name']}"
        if subject["namespace"] != binding["metadata"]["namespace"]:
            yield f"{subject['name']} is of another namespace"


def _of_events(cluster: Cluster) -> Iterator[str]:
    sources = cluster.of("EventSource")
    for kind in ("EventSource", "Sensor"):
        for name, each in cluster.of(kind).items():
            bus = each["spec"].get("eventBusName", "default")
            if bus not in cluster.of("EventBus"):
                yield f"{kind} {name}: no EventBus {bus}"
    for name, sensor in cluster.of("Sensor").items():
        for wanted in sensor["spec"]["dependencies"]:
            source = sources.get(wanted["eventSourceName"], {"spec": {}})["spec"]
            events = {
                event for kind in ("sqs", "minio", "webhook") for event in source.get(kind, {})
            }
            if wanted["eventName"] not in events:
                yield f"Sensor {name}: no event {wanted['eventSourceName']}/{wanted['eventName']}"
    for name, source in sources.items():
        for kind in ("sqs", "minio", "webhook"):
            for event in source["spec"].get(kind, {}).values():
                for field in ("accessKey", "secretKey", "authSecret"):
                    if field in event:
                        chosen = event[field]
                        found = _secret(cluster, chosen["name"], chosen["key"])
                        yield from (f"EventSource {name}: {text}" for text in found)
