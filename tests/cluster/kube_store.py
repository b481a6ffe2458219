"""Objects of the Kubernetes double: versions, generated names, optimistic locking, watches.

One number counts every write; an object's `resourceVersion` is the number of its last one. Who
watches reads the log of writes from the version that he names, or is told that it is too old.
"""

from __future__ import annotations

import copy
import random
import threading
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.cluster.kube_errors import Kind, already_exists, conflict, not_found
from tests.cluster.kube_selectors import fields_meet, labels_meet

Content = dict[str, Any]
TRAINER, JOBSET = "trainer.kubeflow.org", "jobset.x-k8s.io"
TRAINJOBS = Kind(TRAINER, "v1alpha1", "trainjobs", "TrainJob")
RUNTIMES = Kind(TRAINER, "v1alpha1", "trainingruntimes", "TrainingRuntime")
CLUSTER_RUNTIMES = Kind(
    TRAINER, "v1alpha1", "clustertrainingruntimes", "ClusterTrainingRuntime", namespaced=False
)
JOBSETS = Kind(JOBSET, "v1alpha2", "jobsets", "JobSet")
JOBS = Kind("batch", "v1", "jobs", "Job")
PODS = Kind("", "v1", "pods", "Pod", short=("po",))
EVENTS = Kind("", "v1", "events", "Event", short=("ev",))
NAMESPACES = Kind("", "v1", "namespaces", "Namespace", namespaced=False, short=("ns",))
QUOTAS = Kind("", "v1", "resourcequotas", "ResourceQuota", short=("quota",))
SECRETS = Kind("", "v1", "secrets", "Secret")
CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap", short=("cm",))
NODES = Kind("", "v1", "nodes", "Node", namespaced=False, short=("no",))
KINDS = (
    TRAINJOBS, RUNTIMES, CLUSTER_RUNTIMES, JOBSETS, JOBS, PODS, EVENTS, NAMESPACES, QUOTAS,
    SECRETS, CONFIG_MAPS, NODES,
    Kind("", "v1", "serviceaccounts", "ServiceAccount", short=("sa",)),
    Kind("", "v1", "services", "Service", short=("svc",)),
    Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", short=("pvc",)),
)  # fmt: skip


@dataclass(frozen=True)
class Change:
    """A write: ADDED, MODIFIED or DELETED, the object after it, and before it."""

    version: int
    type: str
    kind: Kind
    content: Content
    before: Content | None


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def suffix(length: int = 5) -> str:
    """As generated names end: letters and figures that spell no words."""
    return "".join(random.choices("bcdfghjklmnpqrstvwxz2456789", k=length))


class Store:
    """All objects, by kind, namespace and name; `lock` guards them, `changed` tells of writes."""

    def __init__(self, *, kept: int = 2000) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.version = 1000
        self.log: deque[Change] = deque(maxlen=kept)
        self._objects: dict[tuple[Kind, str, str], Content] = {}

    def create(self, kind: Kind, content: Content) -> Content:
        """Keep an object; its metadata becomes complete."""
        with self.lock:
            made = copy.deepcopy(content)
            meta = made.setdefault("metadata", {})
            if not meta.get("name") and meta.get("generateName"):
                meta["name"] = meta["generateName"] + suffix()
            key = (kind, meta.get("namespace", ""), meta["name"])
            if key in self._objects:
                raise already_exists(kind, meta["name"])
            meta |= {
                "uid": str(uuid.uuid4()), "creationTimestamp": now(), "generation": 1,
            }  # fmt: skip
            made = {"apiVersion": kind.api_version, "kind": kind.kind, **made}
            self._write("ADDED", key, made, before=None)
            return copy.deepcopy(made)

    def get(self, kind: Kind, namespace: str, name: str) -> Content:
        with self.lock:
            found = self._objects.get((kind, namespace, name))
            if found is None:
                raise not_found(kind, name)
            return copy.deepcopy(found)

    def find(self, kind: Kind, namespace: str, name: str) -> Content | None:
        with self.lock:
            return copy.deepcopy(self._objects.get((kind, namespace, name)))

    def list(
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> list[Content]:
        """By name; without a namespace, of all."""
        with self.lock:
            return [
                copy.deepcopy(content)
                for (each, where, _), content in sorted(
                    self._objects.items(), key=lambda item: item[0][1:]
                )
                if each == kind
                and where == (namespace or where)
                and labels_meet(content["metadata"].get("labels", {}), labels)
                and fields_meet(content, fields)
            ]

    def replace(self, kind: Kind, content: Content, *, status_only: bool = False) -> Content:
        """Write a new state of an object; a `resourceVersion` in it must be the current one.

        Status and the rest are written by different calls, as for resources with a status of
        their own; a changed spec counts the generation on.
        """
        with self.lock:
            meta = content["metadata"]
            key = (kind, meta.get("namespace", ""), meta["name"])
            old = self._objects.get(key)
            if old is None:
                raise not_found(kind, meta["name"])
            told = meta.get("resourceVersion")
            if told and told != old["metadata"]["resourceVersion"]:
                raise conflict(kind, meta["name"])
            new = copy.deepcopy(old if status_only else content)
            source = content if status_only else old
            new.pop("status", None)
            if "status" in source:
                new["status"] = copy.deepcopy(source["status"])
            for name in ("uid", "creationTimestamp", "generation", "deletionTimestamp"):
                if name in old["metadata"]:
                    new["metadata"][name] = old["metadata"][name]
            if new.get("spec") != old.get("spec"):
                new["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
            new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
            if new != old:
                self._write("MODIFIED", key, new, before=old)
            return copy.deepcopy(new)

    def change(
        self, kind: Kind, namespace: str, name: str, how: Callable[[Content], None]
    ) -> Content | None:
        """Change an object in place, status and all; None if it is gone."""
        with self.lock:
            key = (kind, namespace, name)
            old = self._objects.get(key)
            if old is None:
                return None
            new = copy.deepcopy(old)
            how(new)
            if new != old:
                self._write("MODIFIED", key, new, before=old)
            return copy.deepcopy(new)

    def remove(self, kind: Kind, namespace: str, name: str) -> Content | None:
        with self.lock:
            old = self._objects.pop((kind, namespace, name), None)
            if old is None:
                return None
            gone = copy.deepcopy(old)
            self.version += 1
            gone["metadata"]["resourceVersion"] = str(self.version)
            self.log.append(Change(self.version, "DELETED", kind, gone, old))
            self.changed.notify_all()
            return copy.deepcopy(gone)

    def _write(
        self, form: str, key: tuple[Kind, str, str], content: Content, before: Content | None
    ) -> None:
        self.version += 1
        content["metadata"]["resourceVersion"] = str(self.version)
        self._objects[key] = content
        kept = copy.deepcopy(content)
        self.log.append(Change(self.version, form, key[0], kept, before))
        self.changed.notify_all()
