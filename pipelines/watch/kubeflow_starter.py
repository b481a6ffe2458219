"""Runs on Kubeflow."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from components.common.project import Project
from infra.kubeflow import Access, Kubeflow, NotThere
from pipelines.watch.starter import Ended

# Short limits: a start that was asked for must have had its effect long before its claim may be
# taken over. Looking for pipeline and experiment comes first, and takes no more than 15 s each.
_PATIENCE, _TIMEOUT = 5.0, 10.0


class KubeflowStarter:
    """Starts runs of the pipeline that `evertrain deploy` uploaded.

    Args:
        project: Its `cluster` says where, and which pipeline.
        host: Of the API; empty: as the settings or the environment say.
        data: Data URI; empty: as the pipeline has it.
    """

    glance, late = 15.0, 80.0

    def __init__(self, project: Project, *, host: str = "", data: str = "") -> None:
        settings = project.settings
        cluster = self._cluster = settings.cluster
        self._host = host or cluster.host
        self._connected: Kubeflow | None = None
        self.about = f"Kubeflow at {self._host or os.environ.get('KF_PIPELINES_ENDPOINT', '')}"
        self._pipeline = cluster.pipeline or settings.name
        self._experiment = cluster.experiment or settings.name
        self._account = cluster.service_account
        self._data, self._overrides = data, project.overrides

    @property
    def _kubeflow(self) -> Kubeflow:
        """Kubeflow, reached when it is first needed: the watcher may be there before it."""
        if self._connected is None:
            cluster, way = self._cluster, self._cluster.access
            seconds = min(way.timeout, _TIMEOUT)
            self._connected = Kubeflow.connect(
                host=self._host,
                namespace=cluster.namespace,
                access=Access(
                    token_env=way.token_env, cookies_env=way.cookies_env, ca=way.ca, proxy=way.proxy
                ),
                patience=min(way.patience, _PATIENCE),
                timeout=(min(seconds, 5.0), seconds),
            )
        return self._connected

    def prepare(self) -> None:
        """See that it answers, and that it knows the pipeline, which may be deployed any time."""
        kubeflow = self._kubeflow
        with suppress(NotThere):
            kubeflow.pipelines.newest(self._pipeline)

    def find(self, name: str) -> str | None:
        found = self._kubeflow.find(name)
        return found[-1].id if found else None  # the oldest

    def start(self, name: str, *, overrides: tuple[str, ...] = (), force: bool = False) -> str:
        parameters: dict[str, Any] = {}
        if self._data:
            parameters["data"] = self._data
        if self._overrides or overrides:
            parameters["overrides"] = [*self._overrides, *overrides]
        if force:
            parameters["force"] = True
        return self._kubeflow.start(
            self._pipeline, name=name, parameters=parameters, experiment=self._experiment,
            service_account=self._account,
        )  # fmt: skip

    def close(self) -> None:
        """Nothing is kept."""

    def ended(self, name: str, run: str) -> Ended | None:
        try:
            state = self._kubeflow.runs.get(run)
        except NotThere:
            return Ended(None, cancelled=True, words="somebody deleted it from Kubeflow")
        if not state.over:
            return None
        if state.state == "CANCELED":
            return Ended(None, cancelled=True)
        if state.state == "FAILED":
            return Ended(None, words=state.error)
        return Ended(0)
