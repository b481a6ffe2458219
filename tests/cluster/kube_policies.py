"""Failure policies: of a Job, when a pod of it failed; of a JobSet, when a Job of it failed."""

from __future__ import annotations

from tests.cluster.kube_store import Content


def pod_action(policy: Content | None, pod: Content) -> tuple[str, str]:
    """By a Job's `podFailurePolicy`: FailJob, Ignore or Count, and what the Job says."""
    status = pod.get("status") or {}
    where = f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}"
    for at, rule in enumerate((policy or {}).get("rules") or []):
        codes = rule.get("onExitCodes")
        for container in (status.get("containerStatuses") or []) if codes else []:
            state = container.get("state", {}).get("terminated") or {}
            code = state.get("exitCode", 0)
            named = codes.get("containerName") in (None, container["name"])
            if code and named and (code in codes["values"]) == (codes["operator"] == "In"):
                said = (
                    f"Container {container['name']} for pod {where} failed with exit code {code} "
                    f"matching {rule['action']} rule at index {at}"
                )
                return rule["action"], said
        for wanted in rule.get("onPodConditions") or []:
            for each in status.get("conditions") or []:
                if (each["type"], each["status"]) == (wanted["type"], wanted.get("status", "True")):
                    said = f"Pod {where} has condition {each['type']} matching {rule['action']} rule at index {at}"  # fmt: skip # noqa: E501
                    return rule["action"], said
    return "Count", ""


def job_action(policy: Content | None, reason: str, replicated_job: str) -> tuple[str, bool]:
    """By a JobSet's `failurePolicy`: the action, and whether it counts against `maxRestarts`."""
    for rule in (policy or {}).get("rules") or []:
        reasons = rule.get("onJobFailureReasons") or [reason]
        jobs = rule.get("targetReplicatedJobs") or [replicated_job]
        if reason in reasons and replicated_job in jobs:
            return rule["action"], not rule["action"].endswith("IgnoreMaxRestarts")
    return "RestartJobSet", True
