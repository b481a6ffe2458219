"""What a TrainJob asks of the cluster, and its form in Kubeflow's SDK.

The SDK's `train` has options for most of it. Added to the spec it makes: environment from secrets,
limits that are not the requests, and the number of processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubeflow.trainer.options.common import Name
from kubeflow.trainer.options.kubernetes import (
    ActiveDeadlineSeconds,
    Annotations,
    JobSetSpecPatch,
    JobSetTemplatePatch,
    JobSpecPatch,
    JobTemplatePatch,
    Labels,
    PodTemplatePatch,
    ReplicatedJobPatch,
    RuntimePatch,
    TrainerCommand,
    TrainingRuntimeSpecPatch,
)
from kubeflow.trainer.types.types import CustomTrainerContainer
from kubeflow_trainer_api import models

NODE = "node"  # of the replicated job, and of its container, in every torch runtime
IDENTITY = "evertrain/identity"  # annotation: whose job it is, whatever its name

# As the image runs: uid 10001, nothing to write to but volumes. Kubernetes' "restricted".
_POD_SECURITY = {
    "runAsNonRoot": True, "runAsUser": 10001, "runAsGroup": 10001, "fsGroup": 10001,
    "seccompProfile": {"type": "RuntimeDefault"},
}  # fmt: skip
_CONTAINER_SECURITY = {
    "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
}  # fmt: skip


@dataclass(frozen=True)
class TrainJobRequest:
    """One TrainJob.

    Attributes:
        name: Of the TrainJob; a DNS label of at most 40 characters, a letter first.
        identity: Tells it from others of this name.
        runtime: TrainingRuntime, or ClusterTrainingRuntime.
        nodes: Pods.
        processes: Of each.
        command: Of each.
        environment: Variables.
        secrets: Variables whose values are in secrets: (secret, key).
        requests, limits: Resources of each pod.
        labels: Of TrainJob and pods.
        queueing: Labels of the TrainJob alone.
        scratch: Size of /tmp; "" for what the machine has.
        shared_memory: Size of /dev/shm; "" for the usual 64 MiB.
        deadline: Seconds until it is ended; 0: never.
        stop_grace: Seconds from SIGTERM to SIGKILL.
    """

    name: str
    identity: str
    runtime: str
    image: str
    nodes: int
    processes: int
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    requests: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    queueing: Mapping[str, str] = field(default_factory=dict)
    service_account: str = ""
    pull_secrets: Sequence[str] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, Any]] = ()
    scratch: str = ""
    shared_memory: str = ""
    deadline: int = 0
    stop_grace: int = 60

    def trainer(self) -> CustomTrainerContainer:
        """Return the SDK's trainer."""
        return CustomTrainerContainer(
            image=self.image, num_nodes=self.nodes, env=dict(self.environment)
        )

    def options(self) -> list[Any]:
        """Return the SDK's options."""
        patch = RuntimePatch(
            TrainingRuntimeSpecPatch(
                JobSetTemplatePatch(
                    spec=JobSetSpecPatch([ReplicatedJobPatch(NODE, JobTemplatePatch(
                        spec=JobSpecPatch(PodTemplatePatch(
                            metadata={"labels": dict(self.labels)}, spec=self.pod()  # type: ignore[arg-type]
                        ))
                    ))])
                )
            )
        )  # fmt: skip
        options: list[Any] = [
            Name(self.name),
            Labels({**self.labels, **self.queueing}),
            Annotations({IDENTITY: self.identity}),
            TrainerCommand(list(self.command)),
            patch,
        ]
        return [*options, ActiveDeadlineSeconds(self.deadline)] if self.deadline else options

    def pod(self) -> dict[str, Any]:
        """Return the patch of the runtime's pods (the SDK's own class lacks the grace period)."""
        volumes = {"scratch": ("/tmp", self.scratch, "")}  # noqa: S108 (the pod's)
        if self.shared_memory:
            volumes["shared-memory"] = ("/dev/shm", self.shared_memory, "Memory")  # noqa: S108
        return {
            "terminationGracePeriodSeconds": self.stop_grace,
            "securityContext": _POD_SECURITY,
            "volumes": [
                {"name": name, "emptyDir": _given(sizeLimit=size, medium=medium)}
                for name, (_, size, medium) in volumes.items()
            ],
            "containers": [
                {
                    "name": NODE,
                    "securityContext": _CONTAINER_SECURITY,
                    "volumeMounts": [
                        {"name": name, "mountPath": path} for name, (path, _, _) in volumes.items()
                    ],
                }
            ],
            **_given(
                serviceAccountName=self.service_account,
                imagePullSecrets=[{"name": name} for name in self.pull_secrets],
                nodeSelector=dict(self.node_selector),
                tolerations=[dict(each) for each in self.tolerations],
            ),
        }

    def complete(self, spec: Any) -> None:
        """Add to the SDK's spec what `train` has no option for."""
        spec.trainer.num_proc_per_node = self.processes
        spec.trainer.env = [
            *(spec.trainer.env or []),
            *(
                models.IoK8sApiCoreV1EnvVar.from_dict(
                    {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
                )
                for name, (secret, key) in sorted(self.secrets.items())
            ),
        ]
        if self.requests or self.limits:
            spec.trainer.resources_per_node = models.IoK8sApiCoreV1ResourceRequirements.from_dict(
                _given(requests=dict(self.requests), limits=dict(self.limits))
            )


def _given(**fields: Any) -> dict[str, Any]:
    """Return the fields that are not empty."""
    return {name: value for name, value in fields.items() if value}
