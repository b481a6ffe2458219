"""Job and JobSet of the double: pods anew after failures, Jobs anew, the end of it all.

After `failure_policy.go` of JobSet and the Job of Kubernetes: a failed pod is made anew up to the
Job's `backoffLimit`, its `podFailurePolicy` decides before; a failed Job restarts the JobSet, or
fails it, by the JobSet's failure policy. Reasons and messages are theirs.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from tests.cluster.kube_errors import Kind
from tests.cluster.kube_events import tell
from tests.cluster.kube_pod_status import set_condition
from tests.cluster.kube_pods import Kubelet
from tests.cluster.kube_policies import job_action, pod_action
from tests.cluster.kube_quota import check_quota
from tests.cluster.kube_store import JOBS, JOBSETS, PODS, TRAINJOBS, Content, Store
from tests.cluster.kube_templates import Plan, owner


@dataclass
class Running:
    """A TrainJob under way.

    Attributes:
        attempt: Restarts of the JobSet so far; `counted`: those that count against its limit.
        failures: Failed pods and containers of this attempt's Job.
        pods: Names of the pods that are there, by index; `leaving`: those that must go first.
    """

    plan: Plan
    namespace: str
    name: str
    attempt: int = 0
    counted: int = 0
    failures: int = 0
    job: Content = field(default_factory=dict)
    pods: dict[int, str] = field(default_factory=dict)
    succeeded: set[int] = field(default_factory=set)
    leaving: set[str] = field(default_factory=set)
    started: bool = False
    finished: str = ""
    deadline: threading.Timer | None = None


class Jobs:
    """What the controllers of Jobs and JobSets do; always with the store's lock held."""

    def __init__(self, store: Store, kubelet: Kubelet) -> None:
        self.store, self.kubelet = store, kubelet
        self.running: dict[tuple[str, str], Running] = {}

    def start(self, state: Running) -> None:
        """Make the Job of this attempt, and its pods."""
        state.started, state.failures = True, 0
        state.pods, state.succeeded = {}, set()
        parent = self.store.find(JOBSETS, state.namespace, state.name)
        assert parent is not None
        state.job = self.make(
            JOBS, state.plan.job_name, state,
            {**state.plan.job, "template": state.plan.template},
            owner("jobset.x-k8s.io/v1alpha2", "JobSet", state.name, parent["metadata"]["uid"]),
        )  # fmt: skip
        seconds = state.plan.trainjob["spec"].get("activeDeadlineSeconds")
        if seconds and state.deadline is None:
            state.deadline = threading.Timer(
                seconds * self.kubelet.second, self._overdue, args=(state,)
            )
            state.deadline.daemon = True
            state.deadline.start()
        self.fill(state)
        self.report(state)

    def fill(self, state: Running) -> None:
        """Make the pods that are missing, as far as quotas allow."""
        for index in range(state.plan.nodes):
            if index in state.pods or index in state.succeeded:
                continue
            pod = state.plan.pod(index, state.attempt, state.job["metadata"]["uid"])
            refused = check_quota(self.store, PODS, pod)
            if refused is not None:
                said = f"Error creating: {refused.status['message']}"
                tell(self.store, state.job, "FailedCreate", said, by="job-controller", warning=True)
                continue
            made = self.store.create(PODS, pod)
            state.pods[index] = made["metadata"]["name"]
            said = f"Created pod: {made['metadata']['name']}"
            tell(self.store, state.job, "SuccessfulCreate", said, by="job-controller")
            self.kubelet.start(made)

    def failed(self, state: Running, pod: Content) -> None:
        """A pod of the Job failed, or a container in it did: by the Job's policy, again or not."""
        if state.finished or not state.started or state.leaving:
            return
        action, why = pod_action(state.plan.job.get("podFailurePolicy"), pod)
        if action == "FailJob":
            self._job_failed(state, "PodFailurePolicy", why)
            return
        if action != "Ignore":
            state.failures += 1
        if state.failures > state.plan.backoff_limit:
            said = "Job has reached the specified backoff limit"
            self._job_failed(state, "BackoffLimitExceeded", said)
            return
        self.fill(state)

    def _job_failed(self, state: Running, reason: str, message: str) -> None:
        self._job_condition(state, "Failed", reason, message)
        tell(self.store, state.job, reason, message, by="job-controller", warning=True)
        policy = state.plan.failure_policy
        action, counts = job_action(policy, reason, state.plan.name)
        first = f"(first failed job: {state.plan.job_name})"
        if policy is None:
            said = f"jobset failed due to one or more job failures {first}"
            self._fail(state, "FailedJobs", said)
        elif action == "FailJobSet":
            said = f"applying FailJobSet failure policy action {first}"
            self._fail(state, "FailJobSetFailurePolicyAction", said)
        elif counts and state.counted >= int(policy.get("maxRestarts") or 0):
            said = f"jobset failed due to reaching max number of restarts {first}"
            self._fail(state, "ReachedMaxRestarts", said)
        else:
            said = f"applying {action} failure policy action {first}"
            self._restart(state, action, counts=counts, said=said)

    def _restart(self, state: Running, action: str, *, counts: bool, said: str) -> None:
        """All pods go; when they are gone, the Job is made anew."""
        state.attempt += 1
        state.counted += counts
        parent = self.store.find(JOBSETS, state.namespace, state.name)
        if parent is not None:
            reason = f"{action}FailurePolicyAction"
            tell(self.store, parent, reason, said, by="jobset-controller", warning=True)
        self.clear(state, finished_too=True)
        if not state.leaving:
            self.start(state)

    def _job_condition(self, state: Running, form: str, reason: str, message: str) -> None:
        def marked(job: Content) -> None:
            set_condition(job.setdefault("status", {}), form, "True", reason, message)

        self.store.change(JOBS, state.namespace, state.plan.job_name, marked)

    def complete(self, state: Running) -> None:
        said = "jobset completed successfully"
        self.finish(state, "Complete")
        self._job_condition(
            state, "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
        )
        self.condition(state, "Complete", "True", "AllJobsCompleted", said)

    def _fail(self, state: Running, reason: str, message: str) -> None:
        self.finish(state, "Failed")
        self.clear(state)
        self.condition(state, "Failed", "True", reason, message)

    def _overdue(self, state: Running) -> None:
        with self.store.lock:
            if not state.finished:
                said = "TrainJob exceeded its active deadline"
                self.finish(state, "Failed")
                self.clear(state, finished_too=True)
                self.condition(state, "Failed", "True", "DeadlineExceeded", said)
                self.report(state)

    def finish(self, state: Running, how: str) -> None:
        state.finished = how
        if state.deadline is not None:
            state.deadline.cancel()

    def clear(self, state: Running, *, finished_too: bool = False) -> None:
        """Delete the pods that run, or all; nothing starts until they are gone."""
        for pod in self.pods(state):
            over = pod["status"]["phase"] in ("Succeeded", "Failed")
            if over and not finished_too:
                continue
            state.leaving.add(pod["metadata"]["name"])
        state.pods = {}
        for name in list(state.leaving):
            found = self.store.find(PODS, state.namespace, name)
            if found is None:
                state.leaving.discard(name)
            else:
                self.kubelet.delete(found)

    def report(self, state: Running) -> None:
        """Write `jobsStatus`: the counts of child Jobs, of which there is one."""
        phases = [pod["status"]["phase"] for pod in self.pods(state)]
        here = sum(phase in ("Running", "Succeeded") for phase in phases)
        suspended = not state.started and not state.finished
        counts = {
            "name": state.plan.name,
            "ready": int(not state.finished and here >= state.plan.nodes),
            "succeeded": int(state.finished == "Complete"),
            "failed": int(state.finished == "Failed"),
            "active": int(bool({"Running", "Pending"} & set(phases)) and not state.finished),
            "suspended": int(suspended),
        }

        def written(content: Content) -> None:
            content.setdefault("status", {})["jobsStatus"] = [counts]

        def as_jobset(content: Content) -> None:
            status = content.setdefault("status", {})
            status |= {"replicatedJobsStatus": [counts], "restarts": state.attempt}

        self.store.change(TRAINJOBS, state.namespace, state.name, written)
        running = sum(phase in ("Running", "Pending") for phase in phases)
        numbers = {"active": running, "ready": phases.count("Running")}
        numbers |= {"succeeded": len(state.succeeded), "failed": state.failures}

        def as_job(content: Content) -> None:
            content.setdefault("status", {}).update(numbers)

        self.store.change(JOBSETS, state.namespace, state.name, as_jobset)
        self.store.change(JOBS, state.namespace, state.plan.job_name, as_job)

    def condition(self, state: Running, form: str, value: str, reason: str, message: str) -> None:
        def written(content: Content) -> None:
            set_condition(content.setdefault("status", {}), form, value, reason, message)

        self.store.change(TRAINJOBS, state.namespace, state.name, written)
        names = {"Complete": "Completed"}

        def as_jobset(content: Content) -> None:
            status = content.setdefault("status", {})
            set_condition(status, names.get(form, form), value, reason, message)

        self.store.change(JOBSETS, state.namespace, state.name, as_jobset)

    def make(
        self, kind: Kind, name: str, state: Running, spec: Content, parent: dict[str, Any]
    ) -> Content:
        meta: Content = {"name": name, "namespace": state.namespace, "ownerReferences": [parent]}
        self.store.remove(kind, state.namespace, name)
        if kind is JOBS:
            meta["labels"] = {
                "jobset.sigs.k8s.io/jobset-name": state.name, **state.plan.job_labels
            }  # fmt: skip
        return self.store.create(kind, {"metadata": meta, "spec": spec, "status": {}})

    def pods(self, state: Running) -> list[Content]:
        """Those of the Job of this attempt, whatever their state."""
        uid = state.job.get("metadata", {}).get("uid")
        found = self.store.list(PODS, state.namespace, labels=f"job-name={state.plan.job_name}")
        return [pod for pod in found if pod["metadata"]["ownerReferences"][0]["uid"] == uid]

    def of(self, pod: Content) -> Running | None:
        """The TrainJob that a pod works for now: not one of an attempt that is over."""
        labels, meta = pod["metadata"].get("labels", {}), pod["metadata"]
        name = labels.get("jobset.sigs.k8s.io/jobset-name", "")
        state = self.running.get((meta.get("namespace", ""), name))
        if state is None or meta["name"] in state.leaving:
            return None
        job = state.job.get("metadata", {}).get("uid")
        return state if meta["ownerReferences"][0]["uid"] == job else None
