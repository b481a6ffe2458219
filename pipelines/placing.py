"""Where each step runs on a cluster, and what its pod gets: `cluster` of evertrain.yaml, applied.

    compile_pipeline(file, placing=placing(project.settings))

Kubeflow itself adds what Kubernetes' restricted profile asks for beside these: no escalation, no
capabilities, the runtime's seccomp profile. `docs/deploy.md` says what has no place in KFP.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast

from kfp import dsl, kubernetes

from components.common import deployed
from components.common.attempts import NODE_VARIABLE
from components.common.cluster_settings import ClusterSettings, PodSettings, StepName
from components.common.settings import ProjectSettings

Place = Callable[[dsl.PipelineTask], None]

USER = 10001  # of the image; a number, so that Kubernetes can tell that it is not root
_SCRATCH, _SHARED_MEMORY = "/tmp", "/dev/shm"  # noqa: S108 (volumes of the pod's own)
_FIRST_PAUSE = "30s"
# Argo counts it from the first attempt's start: with kfp's usual hour a training of two hours that
# loses its node would not be started again.
_RETRY_WITHIN = "30d"
_LABELS = {
    "app.kubernetes.io/name": "evertrain",
    "app.kubernetes.io/part-of": "evertrain",
    "app.kubernetes.io/component": "step",
    "evertrain/s3": "client",  # the network policies of infra/kubernetes go by these two
    "evertrain/mlflow": "client",
}
_DIGEST = re.compile(r"@(sha256:[0-9a-f]{64})$")
_UNITS = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "": 1}


def placing(settings: ProjectSettings, *, pinned: bool = False) -> Place:
    """Return what gives a task of the pipeline its place.

    Args:
        settings: Of the project; its `cluster`, its name, and which variables its alerts need:
            those go to report_run alone.
        pinned: A run ends at once if the image holds other settings than these.
    """
    cluster = settings.cluster
    of_alerts = {name for channel in settings.alerts.channels for name in channel.variables()}

    def place(task: dsl.PipelineTask) -> None:
        step = cast(StepName, task.name.replace("-", "_"))
        # Nodes of a training are pods of their own (a TrainJob), which get what its step would.
        shared = step in ("train_distributed", "refit_model") and settings.training.nodes > 1
        pod = cluster.waiting_pod() if shared else cluster.pod(step)
        _image(task, cluster)
        _environment(task, cluster, without=set() if step == "report_run" else of_alerts)
        if pinned and step == "snapshot_data":
            task.set_env_variable(deployed.VARIABLE, deployed.fingerprint(settings))
        _resources(task, pod)
        _volumes(task, pod)
        _nodes(task, pod)
        _ends(task, pod)
        kubernetes.set_security_context(
            task, run_as_user=USER, run_as_group=USER, run_as_non_root=True
        )
        name = settings.name[:63].rstrip("_-")  # as long as a label may be
        labels = {**_LABELS, "evertrain/project": name, "evertrain/step": step}
        for label, value in labels.items():
            kubernetes.add_pod_label(task, label, value)

    return place


def _image(task: dsl.PipelineTask, cluster: ClusterSettings) -> None:
    kubernetes.set_image_pull_policy(task, cluster.pull_policy)
    if cluster.pull_secrets:
        kubernetes.set_image_pull_secrets(task, list(cluster.pull_secrets))
    if not cluster.image:
        return
    task.set_container_image(cluster.image)
    task.set_env_variable("EVERTRAIN_IMAGE", cluster.image)
    digest = _DIGEST.search(cluster.image)
    if digest:
        # The code's part of a run's key: the same image is the same code.
        task.set_env_variable("EVERTRAIN_IMAGE_DIGEST", digest.group(1))


def _environment(task: dsl.PipelineTask, cluster: ClusterSettings, *, without: set[str]) -> None:
    for name, value in sorted(cluster.environment.items()):
        task.set_env_variable(name, value)
    for name, reference in sorted(cluster.secrets.items()):
        if name not in without:
            kubernetes.use_secret_as_env(
                task,
                secret_name=reference.secret,
                secret_key_to_env={reference.key or name: name},
            )
    kubernetes.use_field_path_as_env(
        task,
        env_name=NODE_VARIABLE,
        field_path="metadata.annotations['workflows.argoproj.io/node-name']",
    )


def _resources(task: dsl.PipelineTask, pod: PodSettings) -> None:
    if pod.cpu:
        task.set_cpu_request(pod.cpu)
    if pod.cpu_limit:
        task.set_cpu_limit(pod.cpu_limit)
    if pod.memory:
        task.set_memory_request(_whole(pod.memory)).set_memory_limit(_whole(pod.memory))
    if pod.gpus:
        task.set_accelerator_type(pod.gpu_type).set_accelerator_limit(pod.gpus)


def _volumes(task: dsl.PipelineTask, pod: PodSettings) -> None:
    if pod.scratch:
        kubernetes.empty_dir_mount(
            task, volume_name="scratch", mount_path=_SCRATCH, size_limit=pod.scratch
        )
    if pod.shared_memory:
        kubernetes.empty_dir_mount(
            task,
            volume_name="shared-memory",
            mount_path=_SHARED_MEMORY,
            medium="Memory",
            size_limit=pod.shared_memory,
        )


def _nodes(task: dsl.PipelineTask, pod: PodSettings) -> None:
    for label, value in sorted(pod.node_selector.items()):
        kubernetes.add_node_selector(task, label, value)
    for toleration in pod.tolerations:
        kubernetes.add_toleration(
            task,
            key=toleration.key or None,
            operator=toleration.operator,
            value=toleration.value or None,
            effect=toleration.effect or None,
            toleration_seconds=toleration.seconds,
        )


def _ends(task: dsl.PipelineTask, pod: PodSettings) -> None:
    if pod.timeout:
        kubernetes.set_timeout(task, pod.timeout)
    if pod.retries:
        task.set_retry(
            pod.retries,
            backoff_duration=_FIRST_PAUSE,
            backoff_factor=2.0,
            backoff_max_duration=_RETRY_WITHIN,
        )


def _whole(quantity: str) -> str:
    """A quantity of memory as kfp takes it: it knows no fractions, and no `k`."""
    number, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", quantity).groups()  # type: ignore[union-attr]
    if "." not in number and unit != "k":
        return quantity
    return str(round(float(number) * _UNITS[unit]))
