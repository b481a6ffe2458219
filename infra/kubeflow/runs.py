"""Runs: start one once, find it by its name, wait for its end, stop it, read its pods' logs."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Any

from infra.errors import OutsideError
from infra.kubeflow.calls import Calls
from infra.kubeflow.entities import Run, TaskState, Version
from infra.kubeflow.errors import NotAllowed, NotThere, Refused
from infra.kubeflow.listing import every, moment, named

_OUTAGE = 600.0  # seconds without an answer after which one no longer waits for a run's end


class Runs:
    """The runs of one namespace.

    Args:
        client: kfp's.
        calls: How calls are made.
        namespace: Of the profile; empty: Kubeflow is not multi-user.
    """

    def __init__(self, client: Any, calls: Calls, namespace: str) -> None:
        self._api, self._calls, self._namespace = client.runs, calls, namespace

    def start(
        self,
        version: Version,
        *,
        name: str,
        parameters: dict[str, Any],
        experiment: str,
        service_account: str = "",
    ) -> str:
        """Start a run of a version and return its id; a lost reply does not start two.

        Args:
            version: Of the pipeline.
            name: Of the run; need not be the only one.
            parameters: Of the pipeline; what is not given has its compiled default.
            experiment: Its id.
            service_account: What its pods run as; empty: Kubeflow's usual.
        """
        from kfp_server_api import (
            V2beta1PipelineVersionReference,
            V2beta1Run,
            V2beta1RuntimeConfig,
        )

        mark = f"started once: {secrets.token_hex(8)}"  # tells it from others of the same name
        body = V2beta1Run(
            display_name=name,
            description=mark,
            experiment_id=experiment,
            pipeline_version_reference=V2beta1PipelineVersionReference(
                pipeline_id=version.pipeline, pipeline_version_id=version.id
            ),
            runtime_config=V2beta1RuntimeConfig(parameters=parameters),
            service_account=service_account or None,
        )

        def found() -> Run | None:
            return next((run for run in self.find(name) if run.description == mark), None)

        made = self._calls.create(
            f"start the run {name!r}", found, self._api.run_service_create_run, body
        )
        return made.id if isinstance(made, Run) else str(made.run_id)

    def find(self, name: str, *, experiment: str = "") -> list[Run]:
        """Return the runs of this name, the newest first, archived ones included."""
        place = {"experiment_id": experiment} if experiment else {"namespace": self._namespace}
        found = every(
            self._calls, "list the runs", self._api.run_service_list_runs, "runs",
            filter=named(name), **place,
        )  # fmt: skip
        return [_run(each) for each in found if each.display_name == name]

    def get(self, run: str) -> Run:
        """Return a run with its tasks.

        Raises:
            NotThere: It was deleted, or never was.
        """
        return _run(self._calls.ask("look at the run", self._api.run_service_get_run, run))

    def terminate(self, run: str) -> None:
        """Ask Kubeflow to stop a run; its pods get SIGTERM. One that has ended is left alone."""
        try:
            self._calls.ask("stop the run", self._api.run_service_terminate_run, run)
        except Refused:
            if not self.get(run).over:
                raise

    def log(self, run: str, pod: str) -> str:
        """Return what a pod of a run printed so far.

        Raises:
            OutsideError: This server does not hand it out, or the pod is gone.
        """
        path = f"/apis/v1alpha1/runs/{run}/nodes/{pod}/log"
        return self._calls.text(f"read the log of {pod}", path, as_in=self._api.run_service_get_run)

    def wait(
        self,
        run: str,
        *,
        timeout: float,
        poll: float = 5.0,
        on_look: Callable[[Run], None] = lambda run: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Run:
        """Wait until a run has ended and return it.

        kfp's own wait never ends for a run that was cancelled, and gives up at the first error.

        Args:
            run: Its id.
            timeout: Seconds until one gives up; the run goes on.
            poll: Seconds between two looks.
            on_look: Called with the run at each look.
            sleep: Waits so many seconds.

        Raises:
            OutsideError: The time is over, or the server was away for ten minutes.
            NotThere: Somebody deleted the run.
        """
        until, heard = time.monotonic() + timeout, time.monotonic()
        while True:
            try:
                state = self.get(run)
            except (NotThere, NotAllowed):
                raise
            except OutsideError:
                if time.monotonic() - heard > _OUTAGE:
                    raise
            else:
                heard = time.monotonic()
                on_look(state)
                if state.over:
                    return state
            if time.monotonic() >= until:
                raise OutsideError(
                    f"the run {run} has not ended in {timeout:g} s; it goes on",
                    hint="look at it in the Kubeflow user interface, or wait longer (--timeout)",
                )
            sleep(min(poll, max(0.0, until - time.monotonic())))


def _run(given: Any) -> Run:
    reference = given.pipeline_version_reference
    details = given.run_details.task_details if given.run_details else None
    return Run(
        id=given.run_id,
        name=given.display_name or "",
        state=given.state or "",
        created=moment(given.created_at),
        finished=moment(given.finished_at),
        error=_error(given.error),
        description=given.description or "",
        schedule=given.recurring_run_id or "",
        pipeline=(reference.pipeline_id or "") if reference else "",
        version=(reference.pipeline_version_id or "") if reference else "",
        tasks=tuple(_task(each) for each in details or []),
    )


def _task(given: Any) -> TaskState:
    pods = [given.pod_name, *(child.pod_name for child in given.child_tasks or [])]
    return TaskState(
        id=given.task_id or "",
        name=given.display_name or "",
        state=given.state or "",
        started=moment(given.start_time),
        ended=moment(given.end_time),
        error=_error(given.error),
        pods=tuple(dict.fromkeys(pod for pod in pods if pod)),
    )


def _error(given: Any) -> str:
    return (given.message or "") if given else ""
