"""The network policies: each flow that is needed is open at both ends, and what is not is shut."""

from __future__ import annotations

import copy

import pytest

from tests.cluster.installations import INSTALLATIONS, cluster_of
from tests.cluster.network import (
    connects,
    is_reached_from,
    policies,
    reaches,
    reaches_namespace,
)
from tests.cluster.pod_security import containers
from tests.cluster.references import STEP_LABELS, Cluster, matches

STRANGER = {"app": "something-else"}


def labels(cluster: Cluster, component: str) -> dict[str, str]:
    """Of the pods of a component; `step` is what Kubeflow makes."""
    if component == "step":
        return STEP_LABELS
    key = "app.kubernetes.io/component"
    found = [pod.labels for _, pod in cluster.pods() if pod.labels.get(key) == component]
    assert found, f"no pod is {component}"
    return found[0]


# Which pods listen, and on which port.
LISTENERS = {"s3": 8333, "mlflow": 5000, "postgres": 5432, "watch": 8080, "train-node": 29400}
OPEN = {
    ("step", "s3"), ("step", "mlflow"),
    ("watch", "s3"), ("watch", "mlflow"),
    ("mlflow", "s3"), ("mlflow", "postgres"),
    ("postgres-backup", "s3"), ("postgres-backup", "postgres"),
    ("s3-bucket", "s3"),
    ("train-node", "s3"), ("train-node", "mlflow"), ("train-node", "train-node"),
}  # fmt: skip
PODS = sorted({each for pair in OPEN for each in pair} | {"watch"})


@pytest.mark.parametrize("source", PODS)
def test_everything_included_opens_what_is_needed_and_nothing_else(source: str) -> None:
    cluster = cluster_of("local")
    found = {
        (source, target)
        for target, port in LISTENERS.items()
        if connects(cluster.documents, labels(cluster, source), labels(cluster, target), port)
    }
    assert found == {pair for pair in OPEN if pair[0] == source}


@pytest.mark.parametrize("installation", INSTALLATIONS)
def test_a_policy_that_no_other_rests_on_shuts_both_directions(installation: str) -> None:
    spec = cluster_of(installation).of("NetworkPolicy")["default-deny"]["spec"]
    assert spec == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


@pytest.mark.parametrize("installation", INSTALLATIONS)
def test_what_a_policy_lets_in_is_a_port_on_which_the_pod_listens(installation: str) -> None:
    cluster = cluster_of(installation)
    for policy in policies(cluster.documents):
        for rule in policy["spec"].get("ingress", []):
            for pod in cluster.selected(policy["spec"]["podSelector"]):
                listens = {
                    p["containerPort"] for _, c in containers(pod.spec) for p in c.get("ports", [])
                }
                let_in = {each["port"] for each in rule["ports"]}
                assert not listens or let_in <= listens, policy["metadata"]["name"]


def test_a_server_is_told_the_port_that_its_container_names() -> None:
    for installation in ("local", "production"):
        for owner, pod in cluster_of(installation).pods():
            for _, container in containers(pod.spec):
                for port in container.get("ports", []):
                    number = str(port["containerPort"])
                    said = any(
                        word.endswith((f":{number}", f"={number}"))
                        for word in container.get("args", [])
                    )
                    assert said or number == "5432", f"{owner}: PostgreSQL alone has it by itself"


def test_a_stranger_in_the_namespace_reaches_nothing() -> None:
    cluster = cluster_of("local")
    for target, port in LISTENERS.items():
        assert not connects(cluster.documents, STRANGER, labels(cluster, target), port)
    assert not reaches(cluster.documents, STRANGER, "93.184.216.34", 443)


def test_only_the_port_that_is_meant_is_open() -> None:
    """SeaweedFS' filer and master ask nobody who they are."""
    cluster = cluster_of("local")
    for port in (8888, 9333, 18333, 22):
        assert not connects(cluster.documents, STEP_LABELS, labels(cluster, "s3"), port)


def test_training_nodes_choose_their_ports() -> None:
    cluster = cluster_of("local")
    node = labels(cluster, "train-node")
    for port in (1, 29400, 29500, 45678, 65535):
        assert connects(cluster.documents, node, node, port)
        assert not connects(cluster.documents, STEP_LABELS, node, port)
    assert not reaches(cluster.documents, node, "10.0.0.1", 6443), "it has no business there"


@pytest.mark.parametrize("installation", INSTALLATIONS)
def test_steps_reach_kubeflow_and_the_api_server(installation: str) -> None:
    found = cluster_of(installation).documents
    for port in (8887, 8888, 8080):
        assert reaches_namespace(found, STEP_LABELS, "kubeflow", {"app": "ml-pipeline"}, port)
    assert reaches(found, STEP_LABELS, "10.96.0.1", 443)
    assert reaches_namespace(found, STRANGER, "kube-system", {"k8s-app": "kube-dns"}, 53)
    for pod in (STEP_LABELS, STRANGER):
        assert not reaches_namespace(found, pod, "default", {}, 8080)


@pytest.mark.parametrize("installation", INSTALLATIONS)
@pytest.mark.parametrize("address", ["169.254.169.254", "169.254.170.2"])
def test_no_pod_reaches_the_clouds_credentials_of_a_node(installation: str, address: str) -> None:
    cluster = cluster_of(installation)
    for pod in (STEP_LABELS, *(each.labels for _, each in cluster.pods())):
        assert not reaches(cluster.documents, pod, address, 80)


def test_the_watcher_reaches_kubeflow_and_is_scraped() -> None:
    cluster = cluster_of("production")
    watch = labels(cluster, "watch")
    assert reaches_namespace(cluster.documents, watch, "kubeflow", {"app": "ml-pipeline"}, 8888)
    assert not reaches_namespace(cluster.documents, watch, "kubeflow", {"app": "mysql"}, 8888)
    for name, expected in (("monitoring", True), ("default", False)):
        namespace = {"kubernetes.io/metadata.name": name}
        assert is_reached_from(cluster.documents, watch, namespace, 8080) is expected


def test_production_reaches_outside_only_where_network_env_says() -> None:
    cluster = cluster_of("production")
    watch = labels(cluster, "watch")
    for pod in (STEP_LABELS, watch, labels(cluster, "train-node")):
        assert reaches(cluster.documents, pod, "52.216.0.1", 443)  # S3, somewhere
        assert not reaches(cluster.documents, pod, "52.216.0.1", 22)
    assert not reaches(cluster.documents, watch, "10.0.0.1", 6443)
    assert reaches(cluster.documents, STEP_LABELS, "10.0.0.1", 6443)
    assert not reaches(cluster.documents, STEP_LABELS, "52.216.0.1", 6443)


def test_events_pass_by_the_bus_alone() -> None:
    cluster = cluster_of("+argo-events/webhook")
    documents = cluster.documents
    source, bus, sensor, job = (
        labels(cluster, each) for each in ("event-source", "event-bus", "sensor", "watch")
    )
    assert connects(documents, source, bus, 4222)
    assert connects(documents, sensor, bus, 4222)
    assert connects(documents, bus, bus, 6222)
    assert not connects(documents, source, bus, 6222)
    assert not connects(documents, source, sensor, 4222)
    assert reaches(documents, sensor, "10.96.0.1", 443)
    assert not reaches(documents, source, "10.96.0.1", 443)
    assert reaches_namespace(documents, job, "kubeflow", {"app": "ml-pipeline"}, 8888)
    for namespace, expected in (({"evertrain/webhook": "client"}, True), ({}, False)):
        assert is_reached_from(documents, source, namespace, 12000) is expected


@pytest.mark.parametrize("installation", INSTALLATIONS)
def test_every_policy_selects_a_pod_and_every_peer_in_the_namespace_is_one(
    installation: str,
) -> None:
    cluster = cluster_of(installation)
    pods = [STEP_LABELS, *(pod.labels for _, pod in cluster.pods())]
    for policy in policies(cluster.documents):
        name, spec = policy["metadata"]["name"], policy["spec"]
        assert any(matches(spec["podSelector"], each) for each in pods), name
        for peer in [*spec.get("ingress", []), *spec.get("egress", [])]:
            for each in peer.get("from", peer.get("to", [])):
                if set(each) == {"podSelector"}:
                    assert any(matches(each["podSelector"], pod) for pod in pods), (name, each)


def test_without_the_default_everything_would_be_open() -> None:
    """The evaluation itself: what no policy selects may do anything."""
    cluster = copy.deepcopy(cluster_of("local"))
    cluster.documents.remove(cluster.of("NetworkPolicy")["default-deny"])
    assert reaches(cluster.documents, STRANGER, "93.184.216.34", 443) is False, "all-to-dns selects"
    cluster.documents.remove(cluster.of("NetworkPolicy")["all-to-dns"])
    assert reaches(cluster.documents, STRANGER, "93.184.216.34", 443)
