"""How a TrainJob is, in words: from what the cluster says of it, of its pods, and in its events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from kubeflow.trainer.constants import constants

from infra.trainer.request import NODE

Phase = Literal["gone", "queued", "pending", "running", "complete", "failed"]

# Reasons of Kubernetes, and what to do. Those in _HOPELESS do not mend themselves.
_HINTS = {
    "OOMKilled": "raise cluster.pods.train_distributed.memory, or lower training.batch_size",
    "Evicted": "the node was short of something: ask for more memory and scratch",
    "ErrImagePull": "look at cluster.image and cluster.pull_secrets; is the registry in reach?",
    "ImagePullBackOff": "look at cluster.image and cluster.pull_secrets; is the registry in reach?",
    "InvalidImageName": "mend cluster.image",
    "ErrImageNeverPull": "the runtime never pulls images, and the node does not have this one",
    "CreateContainerConfigError": "a secret or its key is missing: see cluster.secrets",
    "CreateContainerError": "kubectl describe the pod; a volume or the command may be wrong",
    "Unschedulable": "no machine has what cluster.pods.train_distributed asks for",
    "FailedCreate": "a quota or an admission webhook refuses the pods",
    "DeadlineExceeded": "raise cluster.pods.train_distributed.timeout; training goes on from its "
    "newest checkpoint",
    "NodeLost": "the machine is gone; training goes on from its newest checkpoint",
    "Preempted": "the machine was needed for others; training goes on from its newest checkpoint",
}
_SAME = {
    "NodeShutdown": "NodeLost", "Terminated": "NodeLost", "Shutdown": "NodeLost",
    "DeletionByTaintManager": "NodeLost", "DeletionByPodGC": "NodeLost",
    "PreemptionByScheduler": "Preempted", "TerminationByKubelet": "Preempted",
    "Preempting": "Preempted",
}  # fmt: skip
HOPELESS = frozenset(
    {"InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError"}
)
PULLING = frozenset({"ErrImagePull", "ImagePullBackOff"})
_PENDING = frozenset({"ContainerCreating", "PodInitializing"})


@dataclass(frozen=True)
class Trouble:
    """What is wrong with a node.

    Attributes:
        reason: Kubernetes' own word.
        words: A sentence.
        hint: What to do, or "".
    """

    reason: str
    words: str
    hint: str = ""


@dataclass(frozen=True)
class JobState:
    """How a TrainJob is.

    Attributes:
        phase: `queued`: it waits to be let in (Kueue); `pending`: for some of its pods.
        words: One line.
        running: Pods that run, or have ended well.
        troubles: What is wrong with nodes now, or was when they ended.
    """

    phase: Phase
    words: str
    running: int = 0
    troubles: list[Trouble] = field(default_factory=list)

    @property
    def over(self) -> bool:
        """Whether it will not go on by itself."""
        return self.phase in ("gone", "complete", "failed")

    @property
    def hint(self) -> str:
        """Return what to do about the first trouble for which there is something to do."""
        return next((t.hint for t in self.troubles if t.hint), "")


def state_of(
    name: str,
    job: dict[str, Any] | None,
    pods: Sequence[dict[str, Any]],
    events: Sequence[dict[str, Any]],
    *,
    nodes: int,
) -> JobState:
    """Return how a TrainJob is.

    Args:
        name: Of the TrainJob.
        job: As the cluster has it; None: it has none.
        pods: The newest of each node.
        events: About it, about its Jobs and its pods.
        nodes: Pods that it should have.
    """
    if job is None:
        return JobState("gone", f"there is no TrainJob {name} any more")
    troubles = [trouble for pod in pods for trouble in troubles_of(pod)]
    conditions = {c["type"]: c for c in job.get("status", {}).get("conditions", [])}
    running = sum(_phase(pod) in ("Running", constants.POD_SUCCEEDED) for pod in pods)
    for kind, phase in ((constants.TRAINJOB_FAILED, "failed"), ("Complete", "complete")):
        if _holds(conditions.get(kind)):
            said = conditions[kind]
            reason, message = said.get("reason", ""), said.get("message", "")
            words = f"TrainJob {name} is {phase} ({': '.join(filter(None, (reason, message)))})"
            if phase == "failed" and reason in _HINTS:
                troubles.insert(0, Trouble(reason, message or reason, _HINTS[reason]))
            return JobState(phase, _with(words, troubles), running, troubles=troubles)  # type: ignore[arg-type]
    suspended = conditions.get("Suspended")
    if _holds(suspended) or job.get("spec", {}).get("suspend"):
        message = (suspended or {}).get("message", "")
        words = f"TrainJob {name} waits to be let in" + (f": {message}" if message else "")
        return JobState("queued", words, running)
    if len(pods) < nodes:
        troubles += [_refused(event) for event in _newest(events) if event["type"] == "Warning"]
    phase_now: Phase = "running" if running == nodes else "pending"
    words = f"TrainJob {name}: {running} of {nodes} nodes run"
    return JobState(phase_now, _with(words, troubles), running, troubles)


def troubles_of(pod: dict[str, Any]) -> list[Trouble]:
    """Return what is wrong with a pod, the most telling first."""
    status, who = pod.get("status", {}), who_is(pod)
    found = []
    for container in _containers(status):
        for when in ("state", "lastState"):
            waiting = container.get(when, {}).get("waiting")
            ended = container.get(when, {}).get("terminated")
            if waiting and waiting.get("reason", "") not in {"", *_PENDING, "CrashLoopBackOff"}:
                found.append(_trouble(who, waiting["reason"], waiting.get("message", "")))
            if ended and ended.get("exitCode"):
                reason = ended.get("reason", "")
                code = f"exit code {ended['exitCode']}"
                telling = reason if reason in _HINTS else code
                found.append(_trouble(who, telling, code if telling == reason else ""))
    if status.get("reason"):
        found.append(_trouble(who, status["reason"], status.get("message", "")))
    for condition in status.get("conditions", []):
        disrupted = condition["type"] == "DisruptionTarget" and condition["status"] == "True"
        waits = condition["type"] == "PodScheduled" and condition["status"] == "False"
        if disrupted or (waits and condition.get("reason") == "Unschedulable"):
            found.append(_trouble(who, condition["reason"], condition.get("message", "")))
    return found


def index_of(pod: dict[str, Any]) -> int:
    """Return the number of the node that a pod is."""
    labels = {**pod["metadata"].get("annotations", {}), **pod["metadata"].get("labels", {})}
    return int(labels.get(constants.JOB_INDEX_LABEL, 0))


def who_is(pod: dict[str, Any]) -> str:
    """Return a pod in words."""
    return f"node {index_of(pod)} (pod {pod['metadata']['name']})"


def _containers(status: dict[str, Any]) -> list[dict[str, Any]]:
    """The statuses of the container that trains, then of others."""
    found: list[dict[str, Any]] = [
        *status.get("containerStatuses", []), *status.get("initContainerStatuses", [])
    ]  # fmt: skip
    return sorted(found, key=lambda container: container.get("name") != NODE)


def _trouble(who: str, reason: str, message: str) -> Trouble:
    known = _SAME.get(reason, reason)
    message = message.partition("\n")[0].strip()
    return Trouble(
        known, f"{who}: {reason}" + (f" ({message})" if message else ""), _HINTS.get(known, "")
    )


def _refused(event: dict[str, Any]) -> Trouble:
    return _trouble(
        event["involvedObject"]["name"], event.get("reason", ""), event.get("message", "")
    )


def _newest(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The last event of each reason, the newest first."""

    def at(event: dict[str, Any]) -> str:
        return str(event.get("lastTimestamp") or event.get("eventTime") or "")

    last = {event.get("reason", ""): event for event in sorted(events, key=at)}
    return sorted(last.values(), key=at, reverse=True)


def _with(words: str, troubles: list[Trouble]) -> str:
    return "; ".join([words, *dict.fromkeys(t.words for t in troubles[:4])])


def _phase(pod: dict[str, Any]) -> str:
    return str(pod.get("status", {}).get("phase", ""))


def _holds(condition: dict[str, Any] | None) -> bool:
    return condition is not None and condition.get("status") == "True"
