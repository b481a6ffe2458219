"""Tells MLflow what a training does while it trains, without ever making it wait.

    tracker = Tracker.open(project, uri=..., run_key=..., rank=strategy.rank)
    tracker.point(point)
    tracker.evaluation(step, metrics)
    tracker.close("FINISHED", reason=outcome.stop_reason)

Everything goes to a file in the home's `spool` folder at once, and from there to MLflow by a
thread (`infra.spool`, `infra.delivery`). Ranks other than 0 say nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Self

from components.common.layout import home
from components.common.project import Project
from infra.delivery import Sender
from infra.kept_spools import KeptSpools
from infra.spool import Spool
from infra.store import ObjectStore
from training_core.outcome import Point, Rollback

Status = Literal["FINISHED", "FAILED", "KILLED"]

# Seconds that the end waits for MLflow; what does not arrive is sent by the next training. A new
# database takes some ten to set up; whoever was asked to stop has thirty until SIGKILL.
_PATIENCE: dict[Status, float] = {"FINISHED": 60.0, "FAILED": 20.0, "KILLED": 5.0}


class Tracker:
    """One training's run in MLflow, as rank 0 tells it.

    Args:
        folder: Of spools.
        uri: MLflow's.
        experiment: The run's.
        run_key: Of the run: whoever goes on with the training goes on with the run.
        name: Of the run, for people.
        parameters: Settings; nested ones get names with dots.
        tags: Of the run.
        after: Seconds before anything is sent.
        store: Keeps what MLflow has not got: the folder may go with the pod. None: it stays.
    """

    def __init__(
        self,
        *,
        folder: Path,
        uri: str,
        experiment: str,
        run_key: str,
        name: str,
        parameters: Mapping[str, Any],
        tags: Mapping[str, str],
        after: float = 20.0,
        store: ObjectStore | None = None,
    ) -> None:
        self._kept = None if store is None else KeptSpools(store, folder)
        if self._kept is not None:
            self._kept.bring()
        self._spool = Spool(folder, key=run_key, experiment=experiment, name=name, tags=tags)
        self._spool.params(flat(parameters))
        keep = (lambda path: None) if self._kept is None else self._kept.keep
        self._sender = Sender(self._spool, uri=uri, warn=_warn, after=after, on_unsent=keep)

    @classmethod
    def open(
        cls,
        project: Project,
        *,
        uri: str,
        run_key: str,
        rank: int,
        store: ObjectStore | None = None,
        name: str = "",
        tags: Mapping[str, str] | None = None,
    ) -> Self | Silent:
        """Return the tracker of a project's training; a silent one for ranks other than 0.

        Args:
            project: Its settings become the run's parameters.
            uri, run_key, store: As above.
            rank: Of this process.
            name: For people; empty: the project's, and the beginning of the key.
            tags: More of them.
        """
        if rank != 0:
            return Silent()
        settings = project.settings
        return cls(
            folder=home(project) / "spool",
            uri=uri,
            experiment=settings.tracking.experiment or settings.name,
            run_key=run_key,
            name=name or f"{settings.name} {run_key[:8]}",
            parameters={"training": settings.training.model_dump(mode="json")},
            tags={"evertrain.run": os.environ.get("EVERTRAIN_RUN_ID", ""), **(tags or {})},
            store=store,
        )

    def point(self, point: Point) -> None:
        """Tell a log interval's figures; what was not measured is left out."""
        values = {name: v for name, v in asdict(point).items() if name != "step" and v is not None}
        self._spool.metrics(point.step, values)

    def evaluation(self, step: int, metrics: Mapping[str, float]) -> None:
        """Tell an evaluation's metrics."""
        self._spool.metrics(step, {f"validation_{name}": v for name, v in metrics.items()})

    def rollback(self, rollback: Rollback) -> None:
        """Tell that training went back: what it logs next is of steps that were logged before."""
        self._spool.tags({f"evertrain.rollback.{rollback.step}": _said(rollback)})

    def close(self, status: Status, *, reason: str = "") -> bool:
        """End the run, and wait a while for MLflow to hear it; return whether it has.

        Args:
            status: How training ended.
            reason: Why, in words.
        """
        if reason:
            self._spool.tags({"evertrain.stop_reason": reason})
        self._spool.end(status)
        arrived = self._sender.close(_PATIENCE[status])
        if self._kept is not None:
            self._kept.settle(self._spool.path)
        return arrived


class Silent:
    """The tracker of a rank that tells nothing."""

    def point(self, point: Point) -> None:
        """Do nothing."""

    def evaluation(self, step: int, metrics: Mapping[str, float]) -> None:
        """Do nothing."""

    def rollback(self, rollback: Rollback) -> None:
        """Do nothing."""

    def close(self, status: Status, *, reason: str = "") -> bool:
        """Do nothing."""
        return True


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings by their dotted names."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        found |= flat(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return found


def _said(rollback: Rollback) -> str:
    return f"to step {rollback.to_step}, learning rate × {rollback.lr_factor:g}: {rollback.reason}"


def _warn(words: str) -> None:
    print(f"warning: {words}", file=sys.stderr, flush=True)
