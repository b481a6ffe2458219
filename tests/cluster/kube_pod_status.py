"""What a pod's status says: phases, conditions, states of containers, in Kubernetes' words."""

from __future__ import annotations

from typing import Any

from tests.cluster.kube_store import Content, now


def contain(
    pod: Content, phase: str, state: Content, *, last: Content | None, restarted: bool
) -> None:
    """Write the state of a pod's one container, and what follows from it."""
    status, container = pod["status"], pod["spec"]["containers"][0]
    old = (status.get("containerStatuses") or [{}])[0]
    running = "running" in state
    status |= {"phase": phase, "hostIP": "127.0.0.1", "podIP": "127.0.0.1"}
    status.setdefault("startTime", now())
    status["containerStatuses"] = [
        {
            "name": container["name"], "image": container.get("image", ""), "imageID": "",
            "ready": running, "started": running, "state": state,
            "lastState": last or old.get("lastState", {}),
            "restartCount": old.get("restartCount", 0) + restarted,
        }
    ]  # fmt: skip
    for form in ("Initialized", "Ready", "ContainersReady"):
        set_condition(status, form, "True" if running or form == "Initialized" else "False")


def set_condition(
    status: Content, form: str, value: str, reason: str = "", message: str = ""
) -> None:
    """As `meta.SetStatusCondition`: one of a type, its time the time of its last change."""
    conditions = status.setdefault("conditions", [])
    for each in conditions:
        if each["type"] == form:
            if each["status"] != value:
                each["lastTransitionTime"] = now()
            each.update(_said(value, reason, message))
            return
    conditions.append({"type": form, **_said(value, reason, message), "lastTransitionTime": now()})


def _said(value: str, reason: str, message: str) -> dict[str, Any]:
    told = {"status": value, "reason": reason, "message": message}
    return {name: each for name, each in told.items() if each}


def terminated(code: int, reason: str, since: str) -> Content:
    """How a container ended; 137 and the like are told apart by the reason alone."""
    found = reason or ("Completed" if code == 0 else "StartError" if code == 128 else "Error")
    return {
        "terminated": {
            "exitCode": code, "reason": found, "startedAt": since, "finishedAt": now(),
            "containerID": "",
        }
    }  # fmt: skip


def not_pulled(image: str, message: str, *, first: bool) -> Content:
    """Why a container waits for its image: the first failure says more than those after it."""
    if first:
        said = f'failed to pull and unpack image "{image}": {message}'
        return {"reason": "ErrImagePull", "message": said}
    return {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{image}"'}
