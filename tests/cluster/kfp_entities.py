"""What the KFP double keeps, and how the API shows each.

`view()` is the JSON of the real server: names of the protocol buffers, what is empty left out,
64-bit numbers as text, times that are not yet as the epoch (`server/api_converter.go`).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from tests.cluster.kfp_tasks import Task, filled, new_id, now
from tests.cluster.kfp_times import shown

FINAL = ("SUCCEEDED", "SKIPPED", "FAILED", "CANCELED")


@dataclass
class Experiment:
    name: str
    namespace: str = ""
    description: str = ""
    key: str = field(default_factory=new_id)
    created: int = field(default_factory=now)
    last_run: int = 0
    archived: bool = False

    def columns(self) -> dict[str, Any]:
        return {
            "experiment_id": self.key, "id": self.key, "display_name": self.name,
            "name": self.name, "created_at": self.created, "description": self.description,
            "namespace": self.namespace, "last_run_created_at": self.last_run,
            "storage_state": "ARCHIVED" if self.archived else "AVAILABLE",
        }  # fmt: skip

    def view(self) -> dict[str, Any]:
        return filled(
            experiment_id=self.key, display_name=self.name, description=self.description,
            created_at=shown(self.created), last_run_created_at=shown(self.last_run),
            namespace=self.namespace, storage_state="ARCHIVED" if self.archived else "AVAILABLE",
        )  # fmt: skip


@dataclass
class Version:
    pipeline: str
    name: str
    display_name: str
    spec: dict[str, Any]
    text: str
    description: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    key: str = field(default_factory=new_id)
    created: int = field(default_factory=now)
    order: int = 0

    def columns(self) -> dict[str, Any]:
        return {
            "pipeline_version_id": self.key, "id": self.key, "display_name": self.display_name,
            "name": self.name, "created_at": self.created, "description": self.description,
            "pipeline_id": self.pipeline,
        }  # fmt: skip

    def view(self) -> dict[str, Any]:
        return filled(
            pipeline_id=self.pipeline, pipeline_version_id=self.key, name=self.name,
            display_name=self.display_name, description=self.description,
            created_at=shown(self.created), pipeline_spec=self.spec, tags=self.tags,
        )  # fmt: skip


@dataclass
class Pipeline:
    name: str
    display_name: str
    namespace: str = ""
    description: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    key: str = field(default_factory=new_id)
    created: int = field(default_factory=now)
    versions: dict[str, Version] = field(default_factory=dict)

    def latest(self) -> Version | None:
        return max(self.versions.values(), key=lambda each: each.order, default=None)

    def columns(self) -> dict[str, Any]:
        return {
            "pipeline_id": self.key, "id": self.key, "name": self.name,
            "display_name": self.display_name, "created_at": self.created,
            "description": self.description, "namespace": self.namespace,
        }  # fmt: skip

    def view(self) -> dict[str, Any]:
        return filled(
            pipeline_id=self.key, name=self.name, display_name=self.display_name,
            description=self.description, created_at=shown(self.created),
            namespace=self.namespace, tags=self.tags,
        )  # fmt: skip


@dataclass
class Source:
    """What a run or a schedule runs: a version (or a pipeline's latest), or a spec of its own."""

    pipeline: str = ""
    version: str = ""
    spec: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    root: str = ""

    def view(self) -> dict[str, Any]:
        by_id = filled(pipeline_id=self.pipeline, pipeline_version_id=self.version)
        return filled(
            pipeline_version_reference=by_id,
            pipeline_spec={} if by_id else self.spec,
            runtime_config=filled(parameters=self.parameters, pipeline_root=self.root),
        )


@dataclass
class Run:
    name: str
    experiment: str
    namespace: str
    source: Source
    description: str = ""
    service_account: str = ""
    recurring: str = ""
    key: str = field(default_factory=new_id)
    created: int = field(default_factory=now)
    scheduled: int = 0
    finished: int = 0
    archived: bool = False
    state: str = "PENDING"
    history: list[tuple[int, str, str]] = field(default_factory=list)
    error: str = ""
    tasks: dict[str, Task] = field(default_factory=dict)
    logs: dict[str, list[str]] = field(default_factory=dict)
    script: list[str] = field(default_factory=list)
    attempt: int = 0
    workflow: str = ""
    cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def over(self) -> bool:
        return self.state in FINAL

    def become(self, state: str, error: str = "") -> None:
        """Enter a state; a run that is over stays as it is."""
        if self.over or (state == self.state and self.history):
            return
        self.state, self.error = state, error or self.error
        self.history.append((now(), state, error))
        if self.over:
            self.finished = now()

    def columns(self) -> dict[str, Any]:
        return {
            "run_id": self.key, "id": self.key, "display_name": self.name, "name": self.name,
            "created_at": self.created, "finished_at": self.finished,
            "scheduled_at": self.scheduled, "description": self.description,
            "storage_state": "ARCHIVED" if self.archived else "AVAILABLE", "state": self.state,
            "status": self.state, "namespace": self.namespace, "experiment_id": self.experiment,
            "recurring_run_id": self.recurring, "pipeline_id": self.source.pipeline,
            "pipeline_version_id": self.source.version,
        }  # fmt: skip

    def view(self) -> dict[str, Any]:
        history = [
            filled(update_time=shown(at), state=state, error=_rpc(error))
            for at, state, error in self.history
        ]
        return filled(
            experiment_id=self.experiment, run_id=self.key, display_name=self.name,
            storage_state="ARCHIVED" if self.archived else "AVAILABLE",
            description=self.description, **self.source.view(),
            service_account=self.service_account, created_at=shown(self.created),
            scheduled_at=shown(self.scheduled), finished_at=shown(self.finished),
            state=self.state, error=_rpc(self.error), recurring_run_id=self.recurring,
            state_history=history,
            run_details=filled(
                task_details=[
                    view
                    for each in self.tasks.values()
                    for view in each.views(self.key, self.created, self.workflow)
                ]
            ),
        )  # fmt: skip


@dataclass
class Recurring:
    name: str
    experiment: str
    namespace: str
    source: Source
    trigger: dict[str, Any]
    max_concurrency: int
    enabled: bool
    no_catchup: bool = False
    description: str = ""
    service_account: str = ""
    key: str = field(default_factory=new_id)
    created: int = field(default_factory=now)
    updated: int = field(default_factory=now)
    fired: int = 0

    def columns(self) -> dict[str, Any]:
        return {
            "recurring_run_id": self.key, "id": self.key, "display_name": self.name,
            "name": self.name, "created_at": self.created, "updated_at": self.updated,
            "description": self.description, "pipeline_id": self.source.pipeline,
            "pipeline_version_id": self.source.version,
        }  # fmt: skip

    def view(self) -> dict[str, Any]:
        return filled(
            recurring_run_id=self.key, display_name=self.name, description=self.description,
            **self.source.view(), service_account=self.service_account,
            max_concurrency=str(self.max_concurrency), trigger=self.trigger,
            mode="ENABLE" if self.enabled else "DISABLE", created_at=shown(self.created),
            updated_at=shown(self.updated), status="ENABLED" if self.enabled else "DISABLED",
            no_catchup=self.no_catchup, namespace=self.namespace, experiment_id=self.experiment,
        )  # fmt: skip


def _rpc(error: str) -> dict[str, Any]:
    return {"code": 13, "message": error} if error else {}
