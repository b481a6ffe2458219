"""`cluster` of evertrain.yaml: where Kubeflow is, and what each step's pod gets there.

None of it changes a result, so none of it is part of a run's key.
"""

from __future__ import annotations

import re
from typing import Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator, model_validator

from components.common.train_job_settings import NAME as _NAME
from components.common.train_job_settings import TrainJobSettings
from training_core.settings import Settings

_CORES = r"^$|^([0-9]+m|[0-9]+(\.[0-9]+)?)$"
_BYTES = r"^$|^[0-9]+(\.[0-9]+)?(k|Ki|M|Mi|G|Gi|T|Ti)?$"
_VARIABLE = r"^[A-Z_][A-Z0-9_]*$"
_BY_DIGEST = re.compile(r"^\S+@sha256:[0-9a-f]{64}$")

StepName = Literal[
    "snapshot_data", "validate_data", "split_data", "check_training", "train_baseline",
    "tune", "train_distributed", "select_checkpoint", "evaluate_model", "refit_model",
    "promote_model", "report_run",
]  # fmt: skip


class SecretReference(Settings):
    """One value in a Kubernetes secret; the value itself stands nowhere here."""

    secret: str = Field(pattern=_NAME, description="Name of the secret.")
    key: str = Field("", description="Key in it; empty: the variable's own name.")


class Toleration(Settings):
    """Lets a pod onto tainted nodes, as Kubernetes spells it."""

    key: str = Field("", description="Of the taint; empty with operator Exists: any.")
    operator: Literal["Equal", "Exists"] = Field("Equal", description="How the value is compared.")
    value: str = Field("", description="Of the taint.")
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        "", description="Empty: any."
    )
    seconds: int | None = Field(
        None, ge=0, description="NoExecute: how long the pod stays after the taint came."
    )

    @model_validator(mode="after")
    def _as_kubernetes_takes_it(self) -> Self:
        if not self.key and self.operator != "Exists":
            raise ValueError("a toleration without key needs operator: Exists")
        if self.value and self.operator == "Exists":
            raise ValueError("a toleration with operator: Exists has no value")
        if self.seconds is not None and self.effect != "NoExecute":
            raise ValueError("seconds of a toleration need effect: NoExecute")
        return self


class PodSettings(Settings):
    """What a step's pod asks for, and where it may run. What is not given stays as `pods.default`.

    Memory is request and limit at once, so that a step is never evicted for what it was promised;
    CPU is a request alone, because a limit only throttles.
    """

    cpu: str = Field("", pattern=_CORES, description="Cores that are asked for: 2, 500m.")
    cpu_limit: str = Field("", pattern=_CORES, description="Most cores; empty: no limit.")
    memory: str = Field("", pattern=_BYTES, description="Request and limit: 8Gi.")
    scratch: str = Field(
        "", pattern=_BYTES, description="Size of /tmp, where a step keeps its copies: 20Gi."
    )
    shared_memory: str = Field(
        "", pattern=_BYTES, description="Size of /dev/shm, in memory; empty: the usual 64 MiB."
    )
    gpus: int = Field(0, ge=0, description="Accelerators; of each node where there are several.")
    gpu_type: str = Field(
        "nvidia.com/gpu", description="Resource that counts them: nvidia.com/gpu, amd.com/gpu."
    )
    node_selector: dict[str, str] = Field(
        default_factory=dict, description="Labels that a node must have."
    )
    tolerations: tuple[Toleration, ...] = Field((), description="Taints that the pod bears.")
    timeout: int = Field(0, ge=0, description="Seconds until Kubernetes ends the pod; 0: never.")
    retries: int = Field(
        2, ge=0, le=10, description="Times that the step is started anew after it failed."
    )


# A step whose nodes are pods of their own waits for them, and holds no accelerator meanwhile.
_WAITING = {"cpu": "200m", "cpu_limit": "", "memory": "1Gi", "shared_memory": "", "gpus": 0}

_USUAL_PODS: dict[StepName | Literal["default"], PodSettings] = {
    "default": PodSettings(cpu="1", memory="4Gi", scratch="20Gi")
}


class AccessSettings(Settings):
    """How to get in at Kubeflow; what is secret is named by what holds it."""

    token_env: str = Field(
        "EVERTRAIN_KUBEFLOW_TOKEN",
        pattern=_VARIABLE,
        description="Variable that holds a bearer token.",
    )
    cookies_env: str = Field(
        "EVERTRAIN_KUBEFLOW_COOKIES",
        pattern=_VARIABLE,
        description="Variable that holds cookies, as `name=value; name=value`.",
    )
    ca: str = Field(
        "", description="File of certificates to trust; empty: SSL_CERT_FILE, else the usual ones."
    )
    proxy: str = Field("", description="HTTP proxy; empty: HTTPS_PROXY, HTTP_PROXY and NO_PROXY.")
    patience: float = Field(
        30.0, ge=0, description="Seconds for which a call that fails is tried again."
    )
    timeout: float = Field(
        60.0, gt=0, description="Seconds without a word from the server after which a call failed."
    )


class ClusterSettings(Settings):
    """Where Kubeflow is, and what the pipeline's pods get there."""

    host: str = Field(
        "", description="Of the Kubeflow Pipelines API; empty: KF_PIPELINES_ENDPOINT, or --host."
    )
    access: AccessSettings = AccessSettings()
    timezone: str = Field(
        "UTC",
        description="Of Kubeflow's scheduler (CRON_SCHEDULE_TIMEZONE of the installation): "
        "schedules are meant in it.",
    )
    namespace: str = Field(
        "", pattern=r"^$|" + _NAME, description="Profile's namespace; empty: not multi-user."
    )
    experiment: str = Field("", description="In Kubeflow; empty: the project's name.")
    pipeline: str = Field("", description="Its name in Kubeflow; empty: the project's name.")
    image: str = Field(
        "", description="Of every step, by digest: registry/evertrain@sha256:…; deploy needs it."
    )
    project: str = Field(
        "", description="Folder of the project inside the image; empty: /app/NAME-OF-ITS-FOLDER."
    )
    service_account: str = Field(
        "evertrain-run", pattern=_NAME, description="What the pods run as."
    )
    pull_secrets: tuple[str, ...] = Field((), description="Secrets by which images are pulled.")
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        "IfNotPresent", description="When an image is pulled."
    )
    environment: dict[str, str] = Field(
        default_factory=dict, description="Variables of every step; nothing secret."
    )
    secrets: dict[str, SecretReference] = Field(
        default_factory=dict,
        description="Variables of every step whose values are in Kubernetes secrets.",
    )
    pods: dict[StepName | Literal["default"], PodSettings] = Field(
        default_factory=lambda: dict(_USUAL_PODS), description="By step; `default` for all others."
    )
    train_job: TrainJobSettings = Field(
        TrainJobSettings(), description="How the nodes of one training come together."
    )

    @field_validator("timezone")
    @classmethod
    def _zone(cls, given: str) -> str:
        try:
            ZoneInfo(given)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"{given!r} is no time zone such as UTC or Europe/Berlin") from None
        return given

    @field_validator("environment", "secrets")
    @classmethod
    def _variables(cls, given: dict[str, object]) -> dict[str, object]:
        for name in given:
            if not re.match(_VARIABLE, name):
                raise ValueError(f"{name!r} is no name of a variable (capitals, digits, _)")
        return given

    @model_validator(mode="after")
    def _plain_or_secret(self) -> Self:
        both = sorted(set(self.environment) & set(self.secrets))
        if both:
            raise ValueError(f"{both[0]!r} is in both environment and secrets: give it once")
        return self

    @property
    def by_digest(self) -> bool:
        """Whether the image is named by its digest: what runs is what was tested."""
        return bool(_BY_DIGEST.match(self.image))

    def pod(self, step: StepName) -> PodSettings:
        """What a step's pod gets: its own settings over those of `default`.

        A refit trains as `train_distributed` does, and gets what that gets if nothing else is said.
        """
        given = self.pods.get("default", PodSettings()).model_dump(exclude_unset=True)
        if step == "refit_model" and step not in self.pods:
            step = "train_distributed"
        if step in self.pods:
            given |= self.pods[step].model_dump(exclude_unset=True)
        return PodSettings.model_validate(given)

    def waiting_pod(self) -> PodSettings:
        """What the pod of `train_distributed` gets while nodes of its own do the work.

        The nodes get `pod("train_distributed")`; this one keeps its time limit and its retries.
        """
        usual = self.pods.get("default", PodSettings()).model_dump(exclude_unset=True)
        trained = self.pod("train_distributed")
        limits = {"timeout": trained.timeout, "retries": trained.retries}
        return PodSettings.model_validate(usual | _WAITING | limits)


class ScheduleSettings(Settings):
    """One schedule: a Kubeflow recurring run."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,40}$", description="Tells it from the others.")
    cron: str = Field(
        description="Six fields, seconds first, in cluster.timezone: `0 0 2 * * *` is 02:00 "
        "every day."
    )
    enabled: bool = Field(True, description="False: it stays in Kubeflow, but fires no more.")
    settings: tuple[str, ...] = Field((), description="Settings of its runs as key=value.")
    force: bool = Field(False, description="Its runs train even if nothing is new.")
    catch_up: bool = Field(False, description="Fire for what was missed while Kubeflow was down.")
