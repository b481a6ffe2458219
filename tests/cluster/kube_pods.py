"""The kubelet of the double: it schedules pods, pulls images, runs containers, and reports."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from tests.cluster.kube_containers import MissingConfiguration, environment_of
from tests.cluster.kube_events import tell
from tests.cluster.kube_handles import Executor, PodHandle, Run, Trouble
from tests.cluster.kube_pod_status import contain, not_pulled, set_condition, terminated
from tests.cluster.kube_store import PODS, Content, Store, now

_SIGNALS = {"OOMKilled": 137}


class Controller(Protocol):
    """Who is told how pods go; always with the store's lock held."""

    def container_failed(self, pod: Content) -> None: ...
    def pod_ended(self, pod: Content) -> None: ...
    def pod_gone(self, pod: Content) -> None: ...
    def pod_changed(self, pod: Content) -> None: ...


class Kubelet:
    """Runs pods, each in a thread.

    Attributes:
        executor: What a container does.
        second: How long a second of grace and back-off lasts.
    """

    def __init__(self, store: Store, closing: threading.Event) -> None:
        self.store, self.closing = store, closing
        self.executor: Executor = PodHandle.until_told
        self.troubles: list[Trouble] = []
        self.second = 1.0
        self.nodes = ["node-1", "node-2", "node-3"]
        self.controller: Controller
        self.threads: list[threading.Thread] = []
        self.runs: dict[tuple[str, str], Run] = {}
        self._next = 0

    def start(self, pod: Content) -> None:
        container = pod["spec"]["containers"][0]
        run = Run(PodHandle(pod, container, {}))
        meta = pod["metadata"]
        self.runs[meta["namespace"], meta["name"]] = run
        thread = threading.Thread(target=self._run, args=(run,), daemon=True)
        self.threads.append(thread)
        thread.start()

    def run_of(self, pod: Content) -> Run | None:
        meta = pod["metadata"]
        return self.runs.get((meta["namespace"], meta["name"]))

    def delete(self, pod: Content, *, grace: float | None = None) -> None:
        """Ask a pod to end; after its grace it is killed. One that has ended is gone at once."""
        meta, run = pod["metadata"], self.run_of(pod)
        if run is None or run.handle.ended:
            self._gone(pod)
            return
        if run.deleted:
            return
        run.deleted = True
        seconds = pod["spec"].get("terminationGracePeriodSeconds", 30) if grace is None else grace

        def marked(each: Content) -> None:
            each["metadata"] |= {
                "deletionTimestamp": now(), "deletionGracePeriodSeconds": int(seconds),
            }  # fmt: skip

        self.store.change(PODS, meta["namespace"], meta["name"], marked)
        said = f"Stopping container {run.handle.container['name']}"
        self._tell(run, "Killing", said, warning=False)
        run.handle.stop.set()
        timer = threading.Timer(seconds * self.second, run.handle.kill.set)
        timer.daemon = True
        timer.start()

    def end(self, pod: Content, *, reason: str = "", evicted: str = "", lost: bool = False) -> None:
        """Kill a pod's processes: out of memory, evicted, or with the whole node."""
        run = self.run_of(pod)
        if run is None or run.handle.ended:
            return
        run.reason, run.evicted, run.lost = reason, evicted, lost
        run.handle.kill.set()

    def _run(self, run: Run) -> None:
        handle = run.handle
        if not self._placed(run) or not self._pulled(run):
            self._end(run, None)
            return
        while not self.closing.is_set():
            self._started(run)
            try:
                code = self.executor(handle)
            except Exception as error:  # noqa: BLE001 — the container could not be started
                handle.log(f"{type(error).__name__}: {error}")
                code = 128
            if not self._again(run, code):
                return

    def _again(self, run: Run, code: int) -> bool:
        """Report the end of a container; True if it is to run once more."""
        handle = run.handle
        with self.store.lock:
            code = _SIGNALS.get(run.reason, code)
            state = terminated(code, run.reason, run.since)
            policy = handle.pod["spec"].get("restartPolicy", "Always")
            over = run.deleted or run.lost or run.evicted or self.closing.is_set()
            if over or (policy == "Never" or (policy == "OnFailure" and code == 0)):
                self._end(run, state)
                return False
            name = handle.container["name"]
            said = f"back-off 10s restarting failed container={name} pod={handle.name}"
            waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": said}}
            self._status(run, "Running", waiting, last=state, restarted=True)
            if run.reason:  # it was killed, but not to stay away
                run.reason = ""
                handle.kill.clear()
            handle.previous, handle.lines = handle.lines, []
            handle.told.clear()
            said = f"Back-off restarting failed container {name} in pod {handle.name}"
            self._tell(run, "BackOff", said)
            self.controller.container_failed(self._pod(run))
        handle.stop.wait(0.01 * self.second)
        if handle.stop.is_set() or handle.kill.is_set():
            self._end(run, None)
            return False
        return True

    def _placed(self, run: Run) -> bool:
        """Find a node; False if the pod was deleted before there was one."""
        said = ""
        while trouble := self._trouble("unschedulable", run) or self._no_node():
            if trouble.message != said:
                said = trouble.message
                with self.store.lock:
                    self._condition(run, "PodScheduled", "False", "Unschedulable", said)
                    tell(
                        self.store, run.handle.pod, "FailedScheduling", said,
                        by="default-scheduler", warning=True,
                    )  # fmt: skip
            if run.handle.stop.wait(0.01) or self.closing.is_set():
                return False
        with self.store.lock:
            if run.deleted or run.lost:
                return False
            self._next += 1
            node = self.nodes[self._next % len(self.nodes)]
            run.handle.pod["spec"]["nodeName"] = node
            meta = run.handle.pod["metadata"]

            def assigned(pod: Content) -> None:
                pod["spec"]["nodeName"] = node

            self.store.change(PODS, meta["namespace"], meta["name"], assigned)
            self._condition(run, "PodScheduled", "True")
            name = f"{meta['namespace']}/{meta['name']}"
            said = f"Successfully assigned {name} to {node}"
            tell(self.store, run.handle.pod, "Scheduled", said, by="default-scheduler")
        return True

    def _pulled(self, run: Run) -> bool:
        """Pull the image and gather the environment; False if the pod was deleted meanwhile."""
        image, tries = run.handle.container.get("image", ""), 0
        while not self.closing.is_set():
            trouble, missing = self._trouble("image", run), ""
            try:
                if trouble is None:
                    run.handle.environment = environment_of(
                        self.store, run.handle.pod, run.handle.container
                    )
                    return not run.handle.stop.is_set() and not run.lost
            except MissingConfiguration as error:
                missing = str(error)
            with self.store.lock:
                if missing:
                    waiting = {"reason": "CreateContainerConfigError", "message": missing}
                    self._tell(run, "Failed", f"Error: {missing}")
                else:
                    assert trouble is not None
                    waiting = not_pulled(image, trouble.message, first=tries == 0)
                    if tries < 2:
                        self._tell(run, "BackOff" if tries else "Failed", waiting["message"])
                self._status(run, "Pending", {"waiting": waiting})
            tries += 1
            if run.handle.stop.wait(0.02) or run.handle.kill.is_set():
                return False
        return False

    def _trouble(self, kind: str, run: Run) -> Trouble | None:
        found = (each for each in self.troubles if each.kind == kind and each.match(run.handle.pod))
        return next(found, None)

    def _no_node(self) -> Trouble | None:
        if self.nodes:
            return None
        return Trouble("unschedulable", "0/3 nodes are available: 3 node(s) were unreachable.")

    def _started(self, run: Run) -> None:
        with self.store.lock:
            run.since = now()
            self._status(run, "Running", {"running": {"startedAt": run.since}})
            said = f"Started container {run.handle.container['name']}"
            self._tell(run, "Started", said, warning=False)

    def _end(self, run: Run, state: Content | None) -> None:
        """The pod runs no more: report its end, or take it away where it was deleted or lost."""
        with self.store.lock:
            run.handle.ended = True
            if run.lost:
                self._condition(
                    run, "DisruptionTarget", "True", "DeletionByTaintManager",
                    "Taint manager: deleting due to NoExecute taint",
                )  # fmt: skip
            if state is not None:
                failed = bool(state["terminated"]["exitCode"] or run.evicted)
                self._status(run, "Failed" if failed else "Succeeded", state)
            if run.evicted:
                self._evicted(run)
            if run.deleted or run.lost or state is None:
                self._gone(self._pod(run))
            else:
                self.controller.pod_ended(self._pod(run))

    def _evicted(self, run: Run) -> None:
        why = {"phase": "Failed", "reason": "Evicted", "message": run.evicted}
        self._change(run, lambda pod: pod["status"].update(why))
        self._condition(run, "DisruptionTarget", "True", "TerminationByKubelet", run.evicted)
        self._tell(run, "Evicted", run.evicted)

    def _gone(self, pod: Content) -> None:
        meta = pod["metadata"]
        if self.store.remove(PODS, meta["namespace"], meta["name"]):
            self.controller.pod_gone(pod)

    def _pod(self, run: Run) -> Content:
        meta = run.handle.pod["metadata"]
        return self.store.find(PODS, meta["namespace"], meta["name"]) or run.handle.pod

    def _change(self, run: Run, how: Callable[[Content], None]) -> None:
        meta = run.handle.pod["metadata"]
        changed = self.store.change(PODS, meta["namespace"], meta["name"], how)
        if changed is not None:
            self.controller.pod_changed(changed)

    def _condition(self, run: Run, form: str, value: str, reason: str = "", said: str = "") -> None:
        self._change(run, lambda pod: set_condition(pod["status"], form, value, reason, said))

    def _status(
        self,
        run: Run,
        phase: str,
        state: Content,
        *,
        last: Content | None = None,
        restarted: bool = False,
    ) -> None:
        self._change(run, lambda pod: contain(pod, phase, state, last=last, restarted=restarted))

    def _tell(self, run: Run, reason: str, said: str, *, warning: bool = True) -> None:
        tell(self.store, run.handle.pod, reason, said, by="kubelet", warning=warning)
