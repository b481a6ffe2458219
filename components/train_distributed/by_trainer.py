"""Nodes as a TrainJob of Kubeflow Trainer: from the settings to a request, and how the job is."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from components.common.cluster_settings import ClusterSettings, PodSettings
from components.common.layout import digest_of, tracking_uri
from components.common.project import Project
from components.train_distributed.shared_job import SharedJob
from components.train_distributed.starters import MODULE, Look
from infra.trainer.jobs import TrainJobs
from infra.trainer.logs import Follower, last_lines
from infra.trainer.request import TrainJobRequest
from infra.trainer.state import HOPELESS, PULLING, index_of
from training_core.errors import ConfigurationError

# What nodes need to know of the world, and the step's own pod has been told; nothing secret.
_HANDED_ON = (
    "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION",
    "EVERTRAIN_COMMIT", "EVERTRAIN_IMAGE_DIGEST", "EVERTRAIN_STORE",
)  # fmt: skip

# Network policies go by the last three.
_LABELS = {
    "app.kubernetes.io/name": "evertrain",
    "app.kubernetes.io/part-of": "evertrain",
    "app.kubernetes.io/component": "train-node",
    "evertrain/s3": "client",
    "evertrain/mlflow": "client",
}


class ByTrainer:
    """Kubeflow Trainer starts them, as a TrainJob."""

    def __init__(
        self,
        project: Project,
        run_key: str,
        run: str,
        *,
        jobs: TrainJobs,
        say: Callable[[str], None],
    ) -> None:
        self._project, self._run_key, self._run, self._jobs = project, run_key, run, jobs
        self._request: TrainJobRequest | None = None
        self._follower: Follower | None = None
        self._say = say

    def identity(self, number: int) -> str:
        """See `Starter`."""
        # Whoever has the same run's key finds it, whatever run of the pipeline that is.
        request = replace(self._wanted(number, ("",), ""), labels={})
        return f"{self._run_key[:12]}-{number}-{digest_of(repr(request))[:12]}"

    def start(self, shared: SharedJob) -> None:
        """See `Starter`."""
        command = ("python", "-m", MODULE, shared.store.uri, shared.key)
        self._request = self._wanted(shared.number, command, shared.read().identity)
        self._jobs.submit(self._request)
        self._say(f"TrainJob {self._request.name} in {self._jobs.api.namespace}")
        self._follower = Follower(self._jobs, self._request.name, say=self._print)

    def look(self) -> Look:
        """See `Starter`."""
        assert self._request is not None
        state = self._jobs.look(self._request.name, nodes=self._request.nodes, patience=10)
        reasons = {trouble.reason for trouble in state.troubles}
        least = self._project.settings.cluster.train_job.min_nodes or self._request.nodes
        return Look(
            state.words,
            over=state.over,
            waiting=state.phase == "pending" and state.running < least,
            pulling=bool(PULLING & reasons),
            hopeless=bool(HOPELESS & reasons),
            hint=state.hint,
        )

    def last_words(self) -> list[str]:
        """See `Starter`."""
        assert self._request is not None
        found = []
        for pod in self._jobs.pods(self._request.name, patience=10):
            name = pod["metadata"]["name"]
            if index_of(pod) == 0 and self._follower is not None and self._follower.seen:
                continue  # they are in this log already
            lines = last_lines(self._jobs, name) or last_lines(self._jobs, name, previous=True)
            found += [f"node {index_of(pod)} | {line}" for line in lines]
        return found

    def stop(self, number: int, *, patience: float, linger: float = 0.0) -> bool:
        """See `Starter`."""
        until = time.monotonic() + linger
        while linger and time.monotonic() < until and not self.look().over:
            time.sleep(1.0)
        self.close()
        return self._jobs.remove(job_name(self._project, self._run_key, number), patience=patience)

    def close(self) -> None:
        """See `Starter`."""
        if self._follower is not None:
            self._follower.close()
            self._follower = None

    def _print(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def _wanted(self, number: int, command: tuple[str, ...], identity: str) -> TrainJobRequest:
        settings = self._project.settings
        cluster, wanted = settings.cluster, settings.cluster.train_job
        pod = cluster.pod("train_distributed")
        requests, limits = _resources(pod)
        return TrainJobRequest(
            name=job_name(self._project, self._run_key, number),
            identity=identity,
            runtime=wanted.runtime,
            image=image_of(cluster),
            nodes=settings.training.nodes,
            processes=settings.training.processes,
            command=command,
            environment=self._environment(),
            secrets={n: (s.secret, s.key or n) for n, s in cluster.secrets.items()},
            requests=requests,
            limits=limits,
            labels={
                **_LABELS,
                "evertrain/project": settings.name[:63].rstrip("_-"),  # as long as a label may be
                "evertrain/run": self._run,
                "evertrain/run-key": self._run_key,
            },
            queueing={
                label: value
                for label, value in (
                    ("kueue.x-k8s.io/queue-name", wanted.queue),
                    ("kueue.x-k8s.io/priority-class", wanted.priority),
                )
                if value
            },
            service_account=wanted.service_account or cluster.service_account,
            pull_secrets=cluster.pull_secrets,
            node_selector=pod.node_selector,
            tolerations=[_toleration(each.model_dump()) for each in pod.tolerations],
            scratch=pod.scratch,
            shared_memory=pod.shared_memory,
            deadline=pod.timeout,
            stop_grace=wanted.stop_grace,
        )

    def _environment(self) -> dict[str, str]:
        handed_on = {name: os.environ[name] for name in _HANDED_ON if name in os.environ}
        uri = tracking_uri(self._project)
        tracking = {"MLFLOW_TRACKING_URI": uri} if "://" in uri and "sqlite" not in uri else {}
        return {
            "EVERTRAIN_HOME": "/tmp/evertrain",  # noqa: S108 (the pod's own)
            **handed_on,
            **tracking,
            **self._project.settings.cluster.environment,
        }


def job_name(project: Project, run_key: str, number: int) -> str:
    """Return the name of an attempt's TrainJob: the same whoever asks, so that it is made once."""
    slug = re.sub(r"[^a-z0-9]+", "-", project.settings.name).strip("-")[:20].strip("-")
    return f"train-{slug}-{run_key[:8]}-{number}"


def image_of(cluster: ClusterSettings) -> str:
    """Return the image of the nodes: that of all steps.

    Raises:
        ConfigurationError: It is not known.
    """
    # What was deployed, not what the file in the image says: that cannot know its own digest.
    image = os.environ.get("EVERTRAIN_IMAGE", "") or cluster.image
    if not image:
        raise ConfigurationError(
            "it is not known which image the nodes of the training run",
            hint="set cluster.image to that of the steps, by its digest",
        )
    return image


def _resources(pod: PodSettings) -> tuple[dict[str, str], dict[str, str]]:
    """Requests and limits, as everywhere: memory is both, CPU a request alone."""
    both = {"memory": pod.memory}
    if pod.gpus:
        both[pod.gpu_type] = str(pod.gpus)
    requests = {"cpu": pod.cpu, **both}
    limits = {"cpu": pod.cpu_limit, **both}
    return (
        {name: size for name, size in requests.items() if size},
        {name: size for name, size in limits.items() if size},
    )


def _toleration(given: dict[str, object]) -> dict[str, object]:
    seconds = given.pop("seconds")
    found = {name: value for name, value in given.items() if value}
    return found if seconds is None else {**found, "tolerationSeconds": seconds}
