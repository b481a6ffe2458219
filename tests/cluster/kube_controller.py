"""The TrainJob controller of the double, told of every change as it happens.

After `trainjob_controller.go` and `plugins/jobset` of kubeflow/trainer. Everything here runs with
the store's lock held, in the thread of who changed something: nothing is polled.
"""

from __future__ import annotations

from tests.cluster.kube_admission import runtime_of
from tests.cluster.kube_errors import Kind
from tests.cluster.kube_events import tell
from tests.cluster.kube_jobs import Jobs, Running
from tests.cluster.kube_pods import Kubelet
from tests.cluster.kube_store import JOBS, JOBSETS, TRAINJOBS, Content, Store, now
from tests.cluster.kube_templates import INDEX, owner, plan_of


class Controllers(Jobs):
    def __init__(self, store: Store, kubelet: Kubelet) -> None:
        super().__init__(store, kubelet)
        kubelet.controller = self

    def created(self, kind: Kind, content: Content) -> None:
        if kind != TRAINJOBS:
            self.resync()
            return
        meta = content["metadata"]
        runtime = runtime_of(self.store, content)[1]
        assert runtime is not None
        try:
            plan = plan_of(content, runtime)
        except (ValueError, KeyError, TypeError) as error:
            said = f"TrainJob resources reconciliation failed: {error}"
            tell(
                self.store, content, "TrainJobResourcesCreationFailed", said,
                by="trainjob-controller", warning=True,
            )  # fmt: skip
            return
        state = Running(plan, meta["namespace"], meta["name"])
        self.running[state.namespace, state.name] = state
        self.make(
            JOBSETS, state.name, state, plan.jobset,
            owner("trainer.kubeflow.org/v1alpha1", "TrainJob", state.name, meta["uid"]),
        )  # fmt: skip
        if content["spec"].get("suspend"):
            self.condition(state, "Suspended", "True", "Suspended", "TrainJob is suspended")
            self.report(state)
        else:
            self.start(state)

    def replaced(self, kind: Kind, content: Content) -> None:
        """A client changed an object: of a TrainJob, what may change is its suspension."""
        if kind != TRAINJOBS:
            self.resync()
            return
        meta = content["metadata"]
        state = self.running.get((meta["namespace"], meta["name"]))
        if state is None or state.finished:
            return
        if content["spec"].get("suspend") and state.started:
            state.started = False
            self.clear(state)
            self.condition(state, "Suspended", "True", "Suspended", "TrainJob is suspended")
        elif not content["spec"].get("suspend") and not state.started:
            runtime = runtime_of(self.store, content)[1]
            if runtime is not None:
                state.plan = plan_of(content, runtime)
            self.condition(state, "Suspended", "False", "Resumed", "TrainJob is resumed")
            state.started = True
            if not state.leaving:  # else when they are gone
                self.start(state)
        self.report(state)

    def deleted(self, trainjob: Content, told: Content) -> bool:
        """Take a TrainJob away with what it owns; True if it waits for that (foreground)."""
        meta = trainjob["metadata"]
        policy = told.get("propagationPolicy") or "Background"
        state = self.running.get((meta["namespace"], meta["name"]))
        if state is not None and policy != "Orphan":
            self.finish(state, "Deleted")
            self.clear(state, finished_too=True)
            if policy == "Foreground" and state.leaving:

                def marked(job: Content) -> None:
                    job["metadata"]["deletionTimestamp"] = now()
                    job["metadata"]["finalizers"] = ["foregroundDeletion"]

                self.store.change(TRAINJOBS, meta["namespace"], meta["name"], marked)
                return True
        self._remove(meta["namespace"], meta["name"], all_of_it=policy != "Orphan")
        return False

    def resync(self) -> None:
        """What could not be made before may be possible now: a quota was raised, a pod went."""
        for state in list(self.running.values()):
            if state.started and not state.finished and not state.leaving:
                self.fill(state)

    # what the kubelet tells
    def container_failed(self, pod: Content) -> None:
        state = self.of(pod)
        if state is not None:
            self.failed(state, pod)

    def pod_ended(self, pod: Content) -> None:
        state = self.of(pod)
        if state is None:
            self.resync()
            return
        index = int(pod["metadata"]["annotations"][INDEX])
        state.pods.pop(index, None)
        if pod["status"]["phase"] == "Succeeded":
            state.succeeded.add(index)
            if len(state.succeeded) == state.plan.nodes:
                self.complete(state)
        else:
            self.failed(state, pod)
        self.report(state)

    def pod_gone(self, pod: Content) -> None:
        """A pod that nobody of ours deleted counts as failed; one that had to go makes room."""
        meta = pod["metadata"]
        for state in list(self.running.values()):
            if meta["name"] in state.leaving:
                state.leaving.discard(meta["name"])
                if not state.leaving and state.started and not state.finished:
                    self.start(state)
                if not state.leaving and state.finished == "Deleted":
                    self._remove(state.namespace, state.name, all_of_it=True)
                self.report(state)
                return
        found = self.of(pod)
        if found is not None:
            index = int(meta["annotations"][INDEX])
            if found.pods.get(index) == meta["name"]:
                del found.pods[index]
                self.failed(found, pod)
                self.report(found)
        self.resync()

    def pod_changed(self, pod: Content) -> None:
        state = self.of(pod)
        if state is not None:
            self.report(state)

    def _remove(self, namespace: str, name: str, *, all_of_it: bool) -> None:
        self.store.remove(TRAINJOBS, namespace, name)
        if all_of_it:
            state = self.running.pop((namespace, name), None)
            self.store.remove(JOBSETS, namespace, name)
            if state is not None:
                self.store.remove(JOBS, namespace, state.plan.job_name)
