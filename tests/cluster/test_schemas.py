"""The checks of manifests and pods notice what they are there for: each is broken once."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.cluster.installations import cluster_of
from tests.cluster.pod_specs import templates
from tests.cluster.references import Cluster, dangling
from tests.cluster.schemas import check_manifest, check_pod_spec

Document = dict[str, Any]


def deployment() -> Document:
    return copy.deepcopy(cluster_of("production").of("Deployment")["evertrain-watch"])


def pod() -> Document:
    spec: Document = deployment()["spec"]["template"]["spec"]
    return spec


def container(spec: Document) -> Document:
    first: Document = spec["containers"][0]
    return first


POD_FAULTS: dict[str, tuple[Callable[[Document], Any], str]] = {
    "an unknown key": (lambda s: container(s).update(cmd=["x"]), "'cmd' was unexpected"),
    "a number for a text": (lambda s: container(s).update(image=1), "1 is not of type"),
    "no container": (lambda s: s.pop("containers"), "'containers' is a required property"),
    "host network": (lambda s: s.update(hostNetwork=True), "hostNetwork"),
    "host processes": (lambda s: s.update(hostPID=True), "hostPID"),
    "a path of the host": (
        lambda s: s["volumes"].append({"name": "x", "hostPath": {"path": "/"}}),
        "hostPath is not allowed",
    ),
    "root": (lambda s: s["securityContext"].update(runAsUser=0), "runAsUser is 0"),
    "root of a container": (
        lambda s: container(s)["securityContext"].update(runAsUser=0),
        "runAsUser is 0",
    ),
    "maybe root": (lambda s: s["securityContext"].pop("runAsNonRoot"), "runAsNonRoot is not true"),
    "root again in a container": (
        lambda s: container(s)["securityContext"].update(runAsNonRoot=False),
        "runAsNonRoot is false",
    ),
    "no seccomp": (lambda s: s["securityContext"].pop("seccompProfile"), "no seccompProfile"),
    "seccomp off": (
        lambda s: container(s)["securityContext"].update(seccompProfile={"type": "Unconfined"}),
        "seccompProfile is Unconfined",
    ),
    "escalation": (
        lambda s: container(s)["securityContext"].pop("allowPrivilegeEscalation"),
        "allowPrivilegeEscalation",
    ),
    "capabilities kept": (
        lambda s: container(s)["securityContext"].pop("capabilities"),
        "drop lacks ALL",
    ),
    "a capability added": (
        lambda s: container(s)["securityContext"]["capabilities"].update(add=["NET_ADMIN"]),
        "NET_ADMIN is added",
    ),
    "privileged": (
        lambda s: container(s)["securityContext"].update(privileged=True),
        "privileged is true",
    ),
    "a port of the host": (
        lambda s: container(s)["ports"][0].update(hostPort=80),
        "hostPort",
    ),
    "a probe of another host": (
        lambda s: container(s)["livenessProbe"]["httpGet"].update(host="10.0.0.1"),
        "names a host",
    ),
    "an init container as root": (
        lambda s: s.update(initContainers=[{"name": "x", "image": "x:1"}]),
        "initContainers[x]: allowPrivilegeEscalation",
    ),
    "no requests": (lambda s: container(s)["resources"].pop("requests"), "no request of cpu"),
    "no limits": (lambda s: container(s)["resources"].pop("limits"), "no limit of memory"),
    "a wrong quantity": (
        lambda s: container(s)["resources"]["requests"].update(cpu="one"),
        "'one' is no quantity",
    ),
    "latest": (lambda s: container(s).update(image="evertrain:latest"), "neither a digest"),
    "no tag": (lambda s: container(s).update(image="registry:5000/evertrain"), "neither a digest"),
    "a short digest": (lambda s: container(s).update(image="x@sha256:00"), "no name of an image"),
    "a probe of no port": (
        lambda s: container(s)["readinessProbe"]["httpGet"].update(port="web"),
        "asks the port web",
    ),
    "a variable twice": (
        lambda s: container(s).update(env=[{"name": "A", "value": "1"}] * 2),
        "variable A is given twice",
    ),
    "two mounts at one path": (
        lambda s: container(s)["volumeMounts"].append({"name": "tmp", "mountPath": "/tmp"}),
        "mounted at one path",
    ),
}


def test_the_watchers_pod_is_fine_as_it_is() -> None:
    assert check_pod_spec(pod()) == []


@pytest.mark.parametrize("fault", POD_FAULTS)
def test_a_fault_of_a_pod_is_named(fault: str) -> None:
    spoil, words = POD_FAULTS[fault]
    spec = pod()
    spoil(spec)
    found = check_pod_spec(spec)
    assert any(words in text for text in found), found
    whole = deployment()
    spoil(whole["spec"]["template"]["spec"])
    assert check_manifest(whole), "a manifest of such a pod passes"


def test_what_is_asked_for_can_be_left_out() -> None:
    bare = {"containers": [{"name": "x", "image": "x:1"}]}
    assert check_pod_spec(bare, False, resources=False) == []
    assert any("runAsNonRoot" in text for text in check_pod_spec(bare))


DOCUMENTS: dict[str, tuple[Document, str]] = {
    "no kind": ({"apiVersion": "v1"}, "no kind"),
    "an unknown kind": ({"apiVersion": "v1", "kind": "Pot", "metadata": {"name": "x"}}, "no such"),
    "a removed version": (
        {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "x"}},
        "no such kind",
    ),
    "another's group that begins like ours": (
        {"apiVersion": "apps.example.com/v1", "kind": "Deployment", "metadata": {"name": "x"}},
        "no schema is known",
    ),
    "an unknown resource of a known group": (
        {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "x"}},
        "no schema is known",
    ),
    "a name with a capital": (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "Run"}},
        "'Run' is no name",
    ),
    "a label with a space": (
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "x", "labels": {"a": "b c"}},
        },
        "'b c' is no value",
    ),
    "a TrainJob with a key of another version": (
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "x"},
            "spec": {"runtimeRef": {"name": "torch-distributed"}, "podTemplateOverrides": []},
        },
        "'podTemplateOverrides' was unexpected",
    ),
    "a TrainJob without a runtime": (
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "x"},
            "spec": {},
        },
        "'runtimeRef' is a required property",
    ),
}


@pytest.mark.parametrize("fault", DOCUMENTS)
def test_a_fault_of_a_document_is_named(fault: str) -> None:
    document, words = DOCUMENTS[fault]
    assert any(words in text for text in check_manifest(document)), check_manifest(document)


CUSTOM = {
    "PrometheusRule": ("production", ("groups", 0, "rules", 0, "expresion"), "expresion"),
    "ServiceMonitor": ("production", ("endpoints", 0, "targetport"), "targetport"),
    "TrainingRuntime": ("production", ("mlPolicy", "torch", "numProcPerNode"), "numProcPerNode"),
    "EventBus": ("+argo-events/sqs", ("jetstream", "version2"), "version2"),
    "EventSource": ("+argo-events/sqs", ("sqs", "arrived", "queueUrl"), "queueUrl"),
    "Sensor": ("+argo-events/sqs", ("triggers", 0, "atleastonce"), "atleastonce"),
}


@pytest.mark.parametrize("kind", CUSTOM)
def test_a_wrong_key_of_a_custom_resource_is_named(kind: str) -> None:
    installation, path, words = CUSTOM[kind]
    (document,) = copy.deepcopy(cluster_of(installation)).of(kind).values()
    place = document["spec"]
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = "x"
    assert any(words in text for text in check_manifest(document)), check_manifest(document)


@pytest.mark.parametrize("kind", ["EventBus", "EventSource", "Sensor", "TrainingRuntime"])
def test_the_pods_that_a_controller_makes_are_checked_too(kind: str) -> None:
    installation = "+train-jobs" if kind == "TrainingRuntime" else "+argo-events/sqs"
    (document,) = copy.deepcopy(cluster_of(installation)).of(kind).values()
    assert check_manifest(document) == []
    for template in templates(document):
        template.spec["containers"][0].get("securityContext", {}).pop("capabilities", None)
    assert any("drop lacks ALL" in text for text in check_manifest(document))


def test_the_sensors_job_is_checked_as_a_document() -> None:
    (sensor,) = copy.deepcopy(cluster_of("+argo-events/sqs")).of("Sensor").values()
    (trigger,) = sensor["spec"]["triggers"]
    trigger["template"]["k8s"]["source"]["resource"]["spec"]["backofLimit"] = 1
    assert any("backofLimit" in text for text in check_manifest(sensor))


NAMES: dict[str, tuple[Callable[[Cluster], Any], str]] = {
    "service account": (
        lambda c: c.documents.remove(c.of("ServiceAccount")["evertrain-watch"]),
        "no service account evertrain-watch",
    ),
    "role": (lambda c: c.documents.remove(c.of("Role")["evertrain-run"]), "no Role evertrain-run"),
    "config map": (
        lambda c: [c.documents.remove(x) for n, x in c.of("ConfigMap").items() if "watch" in n],
        "no ConfigMap evertrain-watch",
    ),
    "secret": (lambda c: c.secrets.pop("evertrain-s3"), "the secret evertrain-s3 is not"),
    "key of a secret": (lambda c: c.secrets["evertrain-s3"].clear(), "no key AWS_ACCESS_KEY_ID"),
    "service": (lambda c: c.documents.remove(c.of("Service")["s3"]), "no service s3"),
    "port of a service": (
        lambda c: c.of("Service")["mlflow"]["spec"]["ports"][0].update(targetPort="web"),
        "has no port web",
    ),
    "selector of a service": (
        lambda c: c.of("Service")["mlflow"]["spec"].update(selector={"a": "b"}),
        "Service mlflow selects no pod",
    ),
    "budget": (
        lambda c: c.of("PodDisruptionBudget")["evertrain-watch"]["spec"].update(
            selector={"matchLabels": {"a": "b"}}
        ),
        "selects no pod",
    ),
    "volume": (
        lambda c: c.of("Deployment")["mlflow"]["spec"]["template"]["spec"]["volumes"].clear(),
        "mounts tmp, which is no volume",
    ),
    "variable": (
        lambda c: container(c.of("Deployment")["mlflow"]["spec"]["template"]["spec"])[
            "env"
        ].clear(),
        "$(ARTIFACTS) is used and not given",
    ),
}


@pytest.mark.parametrize("fault", NAMES)
def test_a_name_that_leads_nowhere_is_named(fault: str) -> None:
    spoil, words = NAMES[fault]
    cluster = copy.deepcopy(cluster_of("local"))
    spoil(cluster)
    assert any(words in text for text in dangling(cluster)), dangling(cluster)
