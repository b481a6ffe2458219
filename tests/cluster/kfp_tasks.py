"""The steps of a run, as `run_details.task_details` shows them.

By default each step is one task, with the name of its pod. The server of 2.17 on Argo shows more
and says less: three nodes a step (`train-driver`, `train`, `executor`), and under `child_tasks`
the ids of nodes, which are not the names of pods; only by these are logs given out
(`toApiPipelineTaskDetail` and `NodeStatuses` of kubeflow/pipelines): `KfpServer(argo=True)`.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from tests.cluster.kfp_times import shown


def new_id() -> str:
    return str(uuid.uuid4())


def now() -> int:
    return int(time.time())


def filled(**content: Any) -> dict[str, Any]:
    """Without what is empty, as protocol buffers are written."""
    return {name: value for name, value in content.items() if value not in ("", None, {}, [], 0)}


@dataclass
class Task:
    """A step."""

    name: str
    state: str
    started: int = field(default_factory=now)
    ended: int = 0
    key: str = field(default_factory=new_id)

    def pod(self, workflow: str) -> str:
        """The name of the pod that runs it."""
        if not workflow:
            return f"{self.name}-pod"
        return f"{workflow}-system-container-impl-{self._number('executor')}"

    def views(self, run: str, created: int, workflow: str) -> list[dict[str, Any]]:
        common = {
            "run_id": run, "create_time": shown(created), "start_time": shown(self.started),
        }  # fmt: skip
        if not workflow:
            pod = [{"pod_name": self.pod("")}]
            return [self._view(common, self.key, self.name, self.state, pod)]
        started = "RUNNING" if self.state == "PENDING" else "SUCCEEDED"
        nodes = (
            ("driver", f"{self.name}-driver", started, self.name),
            (self.name, self.name, self.state, "executor"),
            ("executor", "executor", self.state, ""),
        )
        found = []
        for part, shown_as, state, child in nodes:
            key = str(uuid.uuid5(uuid.UUID(self.key), part))
            children = [{"pod_name": f"{workflow}-{self._number(child)}"}] if child else []
            found.append(self._view(common, key, shown_as, state, children))
        return found

    def _view(
        self, common: dict[str, Any], key: str, name: str, state: str, children: list[Any]
    ) -> dict[str, Any]:
        end = shown(self.ended)
        return filled(
            **common, task_id=key, display_name=name, state=state, end_time=end,
            child_tasks=children,
        )  # fmt: skip

    def _number(self, part: str) -> int:
        return int(hashlib.sha256(f"{self.key}{part}".encode()).hexdigest()[:7], 16) % 10**8
