"""What the Pod Security Standard `restricted` refuses, rule by rule.

Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/ (v1.34 and later, which
also refuse a host in probes and hooks). Linux pods; ours are no others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Spec = dict[str, Any]

VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim",
    "projected", "secret",
}  # fmt: skip
SYSCTLS = {
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
}  # fmt: skip
SELINUX = {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}


def containers(spec: Spec) -> Iterator[tuple[str, Spec]]:
    """Every container with its path in the spec."""
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind) or []):
            yield f"{kind}[{container.get('name', index)}]", container


def refused(spec: Spec) -> list[str]:
    """What the standard refuses of a pod's spec; empty: it is admitted."""
    found = list(_of_the_pod(spec))
    pod = spec.get("securityContext") or {}
    found += _of_a_context(pod, "pod")
    for where, container in containers(spec):
        found += _of_a_container(container, pod, where)
    return found


def _of_the_pod(spec: Spec) -> Iterator[str]:
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(field):
            yield f"{field} is true"
    for volume in spec.get("volumes") or []:
        kinds = set(volume) - {"name"}
        if bad := sorted(kinds - VOLUMES):
            yield f"volume {volume.get('name')}: {bad[0]} is not allowed"
    for sysctl in (spec.get("securityContext") or {}).get("sysctls") or []:
        if sysctl.get("name") not in SYSCTLS:
            yield f"sysctl {sysctl.get('name')} is not allowed"


def _of_a_context(context: Spec, where: str) -> Iterator[str]:
    """What pod and container have in common."""
    if context.get("runAsUser") == 0:
        yield f"{where}: runAsUser is 0"
    if context.get("runAsNonRoot") is False:
        yield f"{where}: runAsNonRoot is false"
    for field in ("seccompProfile", "appArmorProfile"):
        kind = (context.get(field) or {}).get("type")
        if kind not in (None, "RuntimeDefault", "Localhost"):
            yield f"{where}: {field} is {kind}"
    selinux = context.get("seLinuxOptions") or {}
    if selinux.get("type", "") not in SELINUX or selinux.get("user") or selinux.get("role"):
        yield f"{where}: seLinuxOptions are not allowed"
    if (context.get("windowsOptions") or {}).get("hostProcess"):
        yield f"{where}: hostProcess is true"


def _of_a_container(container: Spec, pod: Spec, where: str) -> Iterator[str]:
    context = container.get("securityContext") or {}
    yield from _of_a_context(context, where)
    if not context.get("runAsNonRoot", pod.get("runAsNonRoot")):
        yield f"{where}: runAsNonRoot is not true, neither here nor of the pod"
    if not (context.get("seccompProfile") or pod.get("seccompProfile")):
        yield f"{where}: no seccompProfile, neither here nor of the pod"
    if context.get("allowPrivilegeEscalation") is not False:
        yield f"{where}: allowPrivilegeEscalation is not false"
    if context.get("privileged"):
        yield f"{where}: privileged is true"
    if context.get("procMount", "Default") != "Default":
        yield f"{where}: procMount is {context['procMount']}"
    capabilities = context.get("capabilities") or {}
    if "ALL" not in (capabilities.get("drop") or []):
        yield f"{where}: capabilities.drop lacks ALL"
    if added := sorted(set(capabilities.get("add") or []) - {"NET_BIND_SERVICE"}):
        yield f"{where}: capability {added[0]} is added"
    if any(port.get("hostPort") for port in container.get("ports") or []):
        yield f"{where}: a port has a hostPort"
    hooks = (container.get("lifecycle") or {}).values()
    probes = [container.get(f"{kind}Probe") or {} for kind in ("liveness", "readiness", "startup")]
    for handler in (*hooks, *probes):
        if any((handler.get(kind) or {}).get("host") for kind in ("httpGet", "tcpSocket")):
            yield f"{where}: a probe or hook names a host"
