"""TrainJobs: submitted once, however often it is tried; looked at; removed.

    jobs = TrainJobs(TrainerApi(namespace="team"))
    jobs.submit(request)
    state = jobs.look(request.name, nodes=request.nodes)
    jobs.remove(request.name, patience=20)

Whatever is asked may be asked again: an answer can be lost, and so can the process that asked.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from kubeflow.trainer.constants import constants

from infra.errors import OutsideError, Refused
from infra.trainer.api import AlreadyThere, NotThere, TrainerApi
from infra.trainer.request import IDENTITY, TrainJobRequest
from infra.trainer.state import JobState, index_of, state_of

_PLACE = (constants.GROUP, constants.VERSION)


class TrainJobs:
    """The TrainJobs of a namespace."""

    def __init__(self, api: TrainerApi) -> None:
        self.api = api

    def submit(self, request: TrainJobRequest) -> None:
        """Have a TrainJob made, unless it is there already: an answer may have been lost.

        Raises:
            Refused: The cluster will not have it, or has another TrainJob of this name.
            OutsideError: The API server could not be reached, or a quota is used up.
        """
        backend, what = self.api.backend, f"make TrainJob {request.name} in {self.api.namespace}"

        def create() -> None:
            backend.completing = request.complete
            backend.train(
                runtime=request.runtime, trainer=request.trainer(), options=request.options()
            )

        try:
            self.api.asked(what, create)
        except AlreadyThere:
            found = self.read(request.name) or {}
            identity = found.get("metadata", {}).get("annotations", {}).get(IDENTITY, "")
            if identity != request.identity:
                owner = identity or "made by somebody else"
                raise Refused(
                    f"cannot {what}: there is another TrainJob of this name ({owner})",
                    hint=f"kubectl delete trainjob {request.name} -n {self.api.namespace}",
                ) from None
        except NotThere as error:
            raise Refused(
                f"there is no runtime {request.runtime!r}: {error.what}",
                hint="install Kubeflow Trainer's runtimes; cluster.train_job.runtime names one",
            ) from error

    def read(self, name: str, *, patience: float | None = None) -> dict[str, Any] | None:
        """Return a TrainJob as the cluster has it; None: there is none.

        Raises:
            OutsideError: The API server could not be reached.
        """

        def work() -> dict[str, Any]:
            found: dict[str, Any] = self.api.custom.get_namespaced_custom_object(
                *_PLACE, self.api.namespace, constants.TRAINJOB_PLURAL, name
            )
            return found

        try:
            return self.api.asked(f"read TrainJob {name}", work, patience=patience)
        except NotThere:
            return None

    def look(self, name: str, *, nodes: int, patience: float | None = None) -> JobState:
        """Return how a TrainJob is, with what its pods and its events say.

        Raises:
            OutsideError: The API server could not be reached.
        """
        job = self.read(name, patience=patience)
        if job is None:
            return state_of(name, None, [], [], nodes=nodes)
        pods = self.pods(name, patience=patience)
        # Without pods only events say why: a quota, or what an admission webhook refuses.
        events = [] if len(pods) >= nodes else self._events(name, patience=patience)
        return state_of(name, job, pods, events, nodes=nodes)

    def pods(self, name: str, *, patience: float | None = None) -> list[dict[str, Any]]:
        """Return the newest pod of each node, in the order of their numbers."""
        selector = constants.POD_LABEL_SELECTOR.format(trainjob_name=name)
        found = self.api.read(
            f"list the pods of TrainJob {name}",
            self.api.core.list_namespaced_pod,
            self.api.namespace,
            label_selector=selector,
            patience=patience,
        )
        newest: dict[int, dict[str, Any]] = {}
        for pod in sorted(found["items"], key=_age):
            newest[index_of(pod)] = pod
        return [newest[number] for number in sorted(newest)]

    def remove(self, name: str, *, patience: float) -> bool:
        """Have a TrainJob and its pods ended; say whether all of it was gone in time.

        Pods get SIGTERM and their grace period, whether this waits for them or not.

        Raises:
            OutsideError: The API server could not be reached.
        """

        def delete() -> None:
            self.api.custom.delete_namespaced_custom_object(
                *_PLACE, self.api.namespace, constants.TRAINJOB_PLURAL, name,
                propagation_policy="Foreground",
            )  # fmt: skip

        until = time.monotonic() + patience
        with suppress(NotThere):
            self.api.asked(f"remove TrainJob {name}", delete, patience=patience)
        while time.monotonic() < until:
            left = max(1.0, until - time.monotonic())
            if self.read(name, patience=left) is None and not self.pods(name, patience=left):
                return True
            time.sleep(1.0)
        return False

    def _events(self, name: str, *, patience: float | None) -> list[dict[str, Any]]:
        """Return what the cluster said of a TrainJob and of what it is made of."""
        try:
            found = self.api.read(
                f"list the events of TrainJob {name}",
                self.api.core.list_namespaced_event,
                self.api.namespace,
                patience=patience,
            )
        except OutsideError:  # they help, and nothing hangs on them
            return []
        return [
            event
            for event in found["items"]
            if str(event.get("involvedObject", {}).get("name", "")).startswith(name)
        ]


def _age(pod: dict[str, Any]) -> tuple[bool, str]:
    """Of two pods of one node, the one that is there is newer: times are in whole seconds."""
    meta = pod["metadata"]
    there = pod.get("status", {}).get("phase") != "Failed" and "deletionTimestamp" not in meta
    return there, meta["creationTimestamp"]
