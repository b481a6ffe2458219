"""A double of the Kubernetes API server with Kubeflow Trainer in it, for the stock clients.

    with KubernetesServer() as server:
        client = TrainerClient(KubernetesBackendConfig(
            namespace="default", client_configuration=server.configuration()))

A TrainJob's pods run until the test ends them (`end_job`, `end_pod`), or by `executor`: at once
(`exits_with(0)`), or as real processes (`LocalProcesses(tmp_path)`). What goes wrong on nodes:
`troubles`, `lose_node`, `evict`, `out_of_memory`; on the way: `faults`; by rule: objects of kind
ResourceQuota, and `accounts` with the rules of a Role. `second` shortens grace and deadlines.

Who does what is in `kube_*.py`: REST (api, discovery, watch, patches), store, admission, templates,
controllers, pods, containers.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from typing import Any

from tests.cluster.http_double import HttpDouble, Reply, Request
from tests.cluster.kube_admission import admitted
from tests.cluster.kube_api import KubeApi, Subject
from tests.cluster.kube_containers import LocalProcesses, exits_with
from tests.cluster.kube_controller import Controllers
from tests.cluster.kube_errors import Kind, by_status
from tests.cluster.kube_handles import Executor, PodHandle, Trouble
from tests.cluster.kube_logs import Logs
from tests.cluster.kube_pods import Kubelet
from tests.cluster.kube_quota import check_quota
from tests.cluster.kube_runtimes import torch_runtime
from tests.cluster.kube_store import (
    CLUSTER_RUNTIMES,
    CONFIG_MAPS,
    NAMESPACES,
    NODES,
    PODS,
    QUOTAS,
    TRAINJOBS,
    Content,
    Store,
)
from tests.cluster.kube_watch import Target

__all__ = [
    "KubernetesServer",
    "LocalProcesses",
    "PodHandle",
    "Subject",
    "Trouble",
    "exits_with",
    "torch_runtime",
]


class KubernetesServer(HttpDouble):
    """The double.

    Args:
        namespaces: Which there are.
        accounts: By bearer token; where there are any, everybody else gets 401.
        executor: What containers do; without, they run until they are told.
        second: How long a second of grace, back-off and deadline lasts.
    """

    def __init__(
        self,
        *,
        namespaces: tuple[str, ...] = ("default", "kubeflow", "kubeflow-system"),
        accounts: dict[str, Subject] | None = None,
        executor: Executor | None = None,
        second: float = 1.0,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(port=port, tls=tls)
        self.store = Store()
        self.lock = self.store.lock
        self.kubelet = Kubelet(self.store, self.closing)
        self.controllers = Controllers(self.store, self.kubelet)
        self.api = KubeApi(self.store, self.closing.wait)
        self.api.tokens = accounts or {}
        self.api.admit, self.api.delete = self._admit, self._delete
        self.api.created, self.api.replaced = self.controllers.created, self.controllers.replaced
        self.api.special["pods/log"] = Logs(self.store, self.kubelet, self.closing).answer
        if executor is not None:
            self.kubelet.executor = executor
        self.kubelet.second = second
        active = {"phase": "Active"}
        for name in namespaces:
            self.store.create(NAMESPACES, {"metadata": {"name": name}, "status": active})
        ready = {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}
        for name in self.kubelet.nodes:
            self.store.create(NODES, {"metadata": {"name": name}, "status": ready})
        self.store.create(CLUSTER_RUNTIMES, torch_runtime("torch-distributed"))
        self.store.create(
            CONFIG_MAPS,
            {
                "metadata": {"name": "kubeflow-trainer-public", "namespace": "kubeflow-system"},
                "data": {"kubeflow_trainer_version": "v2.1.0"},
            },
        )

    # for tests
    @property
    def executor(self) -> Executor:
        return self.kubelet.executor

    @executor.setter
    def executor(self, executor: Executor) -> None:
        self.kubelet.executor = executor

    @property
    def troubles(self) -> list[Trouble]:
        return self.kubelet.troubles

    def configuration(self, token: str = "") -> Any:
        """A configuration of the stock `kubernetes` client."""
        from kubernetes import client

        made = client.Configuration(host=self.url)
        made.verify_ssl = False
        if token:
            made.api_key = {"authorization": f"Bearer {token}"}
        return made

    def kubeconfig(self, *, namespace: str = "default", token: str = "") -> Content:
        """What a kubeconfig file holds, to be written as YAML or JSON."""
        user = {"token": token} if token else {}
        context = {"cluster": "double", "user": "tester", "namespace": namespace}
        return {
            "apiVersion": "v1", "kind": "Config", "current-context": "double",
            "clusters": [{"name": "double", "cluster": {"server": self.url}}],
            "users": [{"name": "tester", "user": user}],
            "contexts": [{"name": "double", "context": context}],
        }  # fmt: skip

    def until(self, met: Callable[[], bool], *, seconds: float = 60) -> None:
        """Wait for something to be so; asked again after every write of an object."""
        end = time.monotonic() + seconds
        while not met():  # without the lock: it may ask the server
            assert time.monotonic() < end, "it did not come to that"
            with self.store.changed:
                self.store.changed.wait(0.02)

    def apply(self, kind: Kind, content: Content) -> Content:
        """Put an object there as an administrator would: a runtime, a secret, a quota."""
        with self.lock:
            made = self.store.create(kind, content)
            if kind == QUOTAS:
                self.controllers.resync()
            return made

    def trainjob(self, name: str, namespace: str = "default") -> Content:
        return self.store.get(TRAINJOBS, namespace, name)

    def pods(self, job: str = "", namespace: str = "default") -> list[Content]:
        """The pods of a TrainJob, by node; without a name, all of them."""
        selector = f"jobset.sigs.k8s.io/jobset-name={job}" if job else ""
        return self.store.list(PODS, namespace, labels=selector)

    def handles(self, job: str, namespace: str = "default") -> list[PodHandle]:
        """What the executor has of the pods of a TrainJob that run, by node."""
        runs = [self.kubelet.run_of(pod) for pod in self.pods(job, namespace)]
        return [run.handle for run in runs if run is not None and not run.handle.ended]

    def end_pod(self, handle: PodHandle, exit_code: int = 0, *lines: str) -> None:
        """Let a pod that waits for it end."""
        for line in lines:
            handle.log(line)
        handle.exit_code = exit_code
        handle.told.set()

    def end_job(self, name: str, exit_code: int = 0, *, namespace: str = "default") -> None:
        """Let all pods of a TrainJob end."""
        for handle in self.handles(name, namespace):
            self.end_pod(handle, exit_code)

    def lose_node(self, node: str) -> list[str]:
        """A node goes down: its pods die without a word, and are taken away; give their names."""
        with self.lock:
            gone = [pod for pod in self.store.list(PODS) if pod["spec"].get("nodeName") == node]

            def down(content: Content) -> None:
                content["status"]["conditions"] = [
                    {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
                ]

            self.store.change(NODES, "", node, down)
            self.kubelet.nodes = [each for each in self.kubelet.nodes if each != node]
            for pod in gone:
                self.kubelet.end(pod, lost=True)
        return [pod["metadata"]["name"] for pod in gone]

    def evict(
        self, pod: Content, message: str = "The node was low on resource: memory. Threshold "
        "quantity: 100Mi, available: 80Mi."
    ) -> None:  # fmt: skip
        """The kubelet throws a pod out."""
        with self.lock:
            self.kubelet.end(pod, evicted=message)

    def out_of_memory(self, pod: Content) -> None:
        """The kernel kills a pod's container: exit code 137, OOMKilled."""
        with self.lock:
            self.kubelet.end(pod, reason="OOMKilled")

    def close(self) -> None:
        """Stop; what runs is killed and waited for."""
        super().close()
        for run in list(self.kubelet.runs.values()):
            run.handle.kill.set()
            run.handle.stop.set()
        for thread in self.kubelet.threads:
            thread.join(30)
        for state in self.controllers.running.values():
            if state.deadline is not None:
                state.deadline.cancel()

    # for requests
    def answer_to(self, request: Request) -> Reply:
        return self.api.answer(request)

    def error_reply(self, status: int) -> Reply:
        return by_status(status)

    def _admit(self, target: Target, new: Content, old: Content | None) -> Content:
        if target.kind == TRAINJOBS:
            new = admitted(self.store, new, old)
        if old is None and target.kind.namespaced:
            refused = check_quota(self.store, target.kind, new)
            if refused is not None:
                raise refused
        return new

    def _delete(self, target: Target, told: Content) -> Content:
        content = self.store.get(target.kind, target.namespace, target.name)
        if target.kind == PODS:
            grace = told.get("gracePeriodSeconds")
            self.kubelet.delete(content, grace=None if grace is None else float(grace))
            return self.store.find(PODS, target.namespace, target.name) or content
        if target.kind == TRAINJOBS and self.controllers.deleted(content, told):
            return self.store.get(TRAINJOBS, target.namespace, target.name)
        if target.kind != TRAINJOBS:
            self.store.remove(target.kind, target.namespace, target.name)
            self.controllers.resync()
        details = {
            "name": target.name, "group": target.kind.group, "kind": target.kind.plural,
            "uid": content["metadata"]["uid"],
        }  # fmt: skip
        return {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": {name: value for name, value in details.items() if value},
        }  # fmt: skip
