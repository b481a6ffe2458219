"""What the Kubernetes double says of itself: its version, its groups and resources, its health."""

from __future__ import annotations

import re

from tests.cluster.http_double import Reply
from tests.cluster.kube_store import KINDS, Content

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
VERSION = {
    "major": "1", "minor": "33", "gitVersion": "v1.33.1", "gitCommit": "", "gitTreeState": "clean",
    "buildDate": "2025-05-15T08:19:08Z", "goVersion": "go1.24.2", "compiler": "gc",
    "platform": "linux/amd64",
}  # fmt: skip


def about_the_server(path: str) -> Reply | None:
    if path == "/version":
        return Reply.of(VERSION)
    if path in ("/healthz", "/readyz", "/livez"):
        return Reply(200, b"ok", {"Content-Type": "text/plain"})
    if path == "/api":
        return Reply.of({"kind": "APIVersions", "versions": ["v1"]})
    if path == "/apis":
        groups = [_group(name) for name in sorted({kind.group for kind in KINDS} - {""})]
        return Reply.of({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    found = re.fullmatch(r"/api/(v1)|/apis/([^/]+)(?:/([^/]+))?", path)
    if not found:
        return None
    core, group, version = found.groups()
    kinds = [kind for kind in KINDS if kind.group == (group or "")]
    if not kinds or (group and version and version != kinds[0].version):
        return None
    if group and not version:
        return Reply.of({"kind": "APIGroup", "apiVersion": "v1", **_group(group)})
    return Reply.of(
        {
            "kind": "APIResourceList", "apiVersion": "v1",
            "groupVersion": core or f"{group}/{version}",
            "resources": [
                {
                    "name": kind.plural, "singularName": kind.kind.lower(),
                    "namespaced": kind.namespaced, "kind": kind.kind, "verbs": _VERBS,
                    "shortNames": list(kind.short),
                }
                for kind in kinds
            ],
        }
    )  # fmt: skip


def _group(name: str) -> Content:
    version = next(kind.version for kind in KINDS if kind.group == name)
    both = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [both], "preferredVersion": both}
