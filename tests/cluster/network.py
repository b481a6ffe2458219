"""May one pod of the namespace open a connection to another? By the NetworkPolicies alone.

Policies add up: a pod that a policy of a direction selects may do in it what any of them allows,
and nothing else (https://kubernetes.io/docs/concepts/services-networking/network-policies/).
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any

from tests.cluster.references import matches

Document = dict[str, Any]
Labels = dict[str, str]


def policies(documents: list[Document]) -> list[Document]:
    return [each for each in documents if each["kind"] == "NetworkPolicy"]


def connects(documents: list[Document], source: Labels, target: Labels, port: int) -> bool:
    """Between two pods of this namespace, TCP: both ends have to allow it."""
    return _allows(documents, "Egress", source, {"pod": target}, port) and _allows(
        documents, "Ingress", target, {"pod": source}, port
    )


def reaches(documents: list[Document], source: Labels, address: str, port: int) -> bool:
    """From a pod of this namespace to an address outside the cluster."""
    return _allows(documents, "Egress", source, {"address": address}, port)


def reaches_namespace(
    documents: list[Document], source: Labels, namespace: str, pod: Labels, port: int
) -> bool:
    """From a pod of this namespace to one of another (whose own policies are not ours)."""
    peer = {"pod": pod, "namespace": {"kubernetes.io/metadata.name": namespace}}
    return _allows(documents, "Egress", source, peer, port)


def is_reached_from(
    documents: list[Document], target: Labels, namespace: Labels, port: int
) -> bool:
    """From any pod of another namespace with these labels."""
    return _allows(documents, "Ingress", target, {"pod": {}, "namespace": namespace}, port)


def _allows(
    documents: list[Document], direction: str, of: Labels, peer: Document, port: int
) -> bool:
    spec_key, peers_key = {"Ingress": ("ingress", "from"), "Egress": ("egress", "to")}[direction]
    specs = [each["spec"] for each in policies(documents)]
    mine = [s for s in specs if direction in s["policyTypes"] and matches(s["podSelector"], of)]
    if not mine:
        return True
    rules = [rule for spec in mine for rule in spec.get(spec_key) or []]
    return any(
        _is_port(rule, port) and any(_is_peer(each, peer) for each in rule[peers_key])
        for rule in rules
    )


def _is_port(rule: Document, port: int) -> bool:
    ports = rule["ports"]
    return any(
        each.get("protocol", "TCP") == "TCP"
        and each["port"] <= port <= each.get("endPort", each["port"])
        for each in ports
    )


def _is_peer(rule: Document, peer: Document) -> bool:
    if "ipBlock" in rule:
        inside = "address" in peer and ip_address(peer["address"]) in ip_network(
            rule["ipBlock"]["cidr"]
        )
        return inside and not any(
            ip_address(peer["address"]) in ip_network(each)
            for each in rule["ipBlock"].get("except", [])
        )
    if "pod" not in peer:
        return False
    same_namespace = "namespace" not in peer
    if "namespaceSelector" in rule:
        if same_namespace or not matches(rule["namespaceSelector"], peer["namespace"]):
            return False
    elif not same_namespace:
        return False
    return matches(rule.get("podSelector", {}), peer["pod"])
