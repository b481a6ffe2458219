"""What Kubeflow keeps, as values: pipelines, their versions, schedules, runs and their tasks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

State = Literal[
    "PENDING", "RUNNING", "PAUSED", "CANCELING", "SUCCEEDED", "SKIPPED", "FAILED", "CANCELED", ""
]
FINAL: tuple[State, ...] = ("SUCCEEDED", "SKIPPED", "FAILED", "CANCELED")


@dataclass(frozen=True)
class Pipeline:
    """A pipeline; `name` is what the user interface shows."""

    id: str
    name: str
    description: str = ""


@dataclass(frozen=True)
class Version:
    """One version of a pipeline; runs and schedules name the version they are of."""

    id: str
    pipeline: str
    name: str
    description: str = ""
    created: datetime | None = None

    @property
    def number(self) -> int:
        """The number that `evertrain deploy` begins its names with (7-3f2a9c81b0de); 0: none."""
        found = re.match(r"(\d+)-[0-9a-f]{12}$", self.name)
        return int(found.group(1)) if found else 0


@dataclass(frozen=True)
class Schedule:
    """A recurring run. `every` (seconds) stands for `cron` where it is periodic."""

    id: str
    name: str
    description: str
    enabled: bool
    pipeline: str
    version: str
    experiment: str
    cron: str = ""
    every: int = 0
    parameters: dict[str, Any] = field(default_factory=dict)
    catch_up: bool = False
    max_concurrency: int = 1
    service_account: str = ""
    starts: str = ""
    ends: str = ""
    created: datetime | None = None


@dataclass(frozen=True)
class TaskState:
    """One task of a run: `name` is the step's, as KFP spells it (snapshot-data)."""

    id: str
    name: str
    state: State
    started: datetime | None
    ended: datetime | None
    error: str
    pods: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """A run.

    Attributes:
        id: Also the run's id in records and reports: a step reads it from its pod's label.
        error: What Kubeflow says went wrong; the reason is in the run's record.
        tasks: Every node of the run; empty where it was only listed.
    """

    id: str
    name: str
    state: State
    created: datetime | None
    finished: datetime | None = None
    error: str = ""
    description: str = ""
    schedule: str = ""
    pipeline: str = ""
    version: str = ""
    tasks: tuple[TaskState, ...] = ()

    @property
    def over(self) -> bool:
        """Whether it has ended, however."""
        return self.state in FINAL

    @property
    def succeeded(self) -> bool:
        return self.state == "SUCCEEDED"
