"""Every step leaves its record, whatever the end.

    with step("split_data", project=..., store=..., run_key=...) as context:
        context.say(SplitFigures(...))

The record is `runs/<run>/<step>.json` in the object store. A step that failed says so there and
ends its process with the exit code of the design page, so a pod's failure policy can follow it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from components.common.attempts import FOR_GOOD, attempt
from components.common.holding import Holding
from components.common.layout import home, key_record, project_store, record_key
from components.common.project import Project, open_project
from components.common.watchdog import end_with_parent
from infra.errors import ObjectMissing, OutsideError
from infra.guarded import GuardedStore
from infra.store import ObjectStore
from training_core.errors import EvertrainError
from training_core.settings import TrainingSettings

STEPS = (
    "snapshot_data",
    "validate_data",
    "split_data",
    "check_training",
    "train_baseline",
    "train_distributed",
    "select_checkpoint",
    "evaluate_model",
    "promote_model",
    "report_run",
)
EVERY_STEP = (*STEPS[:5], "tune", *STEPS[5:8], "refit_model", *STEPS[8:])
"""With those that are in a pipeline only where `tune.in_pipeline`, `refit.enabled` ask for them."""

Status = Literal["running", "done", "skipped", "stopped", "failed", "interrupted"]


class StepRecord(BaseModel):
    """What one step did.

    Attributes:
        status: `running` is what a killed step leaves behind; `stopped` is a gate's word,
            `failed` an error; `skipped`: another run has the lease.
        seconds: From the step's first line to its last, imports of its libraries included.
        cache_hit: The orchestrator took an earlier run's outputs of this step.
        pod: Name of the pod that did it, on a cluster: by it Kubeflow hands out the log.
    """

    model_config = ConfigDict(extra="forbid")

    format: Literal["evertrain/step/1"] = "evertrain/step/1"
    step: str
    run: str
    run_key: str
    status: Status = "running"
    exit_code: int = 0
    reason: str = ""
    hint: str = ""
    started: datetime = Field(default_factory=lambda: datetime.now(UTC))
    seconds: float = 0.0
    cache_hit: bool = False
    pod: str = Field(default_factory=lambda: os.environ.get("KFP_POD_NAME", ""))
    figures: dict[str, Any] = Field(default_factory=dict)


@dataclass
class StepContext:
    """What a step's logic gets to work with.

    Attributes:
        store: The project's; nothing is written there once the run has lost its lease.
        records: The same store for what only this run writes, whatever happens.
        holding: This step's part in the run's lease.
    """

    project: Project
    store: ObjectStore
    home: Path
    record: StepRecord

    def __post_init__(self) -> None:
        lease = self.project.settings.lease
        self.records = self.store
        self.holding = Holding(self.records, run=self.record.run, settings=lease)
        self.store = GuardedStore(self.records, self.holding.ensure)

    @property
    def cache(self) -> Path:
        """Folder of local copies of objects."""
        return self.home / "cache"

    def say(self, figures: BaseModel) -> None:
        """Put the step's figures into its record."""
        self.record.figures = figures.model_dump(mode="json")

    def save(self) -> None:
        """Write the record as it is now."""
        key = record_key(self.record.run, self.record.step)
        self.records.put(key, self.record.model_dump_json(indent=1).encode())


def current_run() -> str:
    """The run's id: EVERTRAIN_RUN_ID (on a cluster the pipeline sets it from the pod's labels)."""
    run = os.environ.get("EVERTRAIN_RUN_ID", "")
    if not run:
        raise OutsideError(
            "EVERTRAIN_RUN_ID is not set, so this step does not know which run it belongs to",
            hint="start steps through the pipeline: evertrain run PROJECT",
        )
    return run


@contextmanager
def step(
    name: str, *, project: str, store: str, overrides: list[str], data: str = "", run_key: str = ""
) -> Iterator[StepContext]:
    """Run a step's logic; write its record at the start and at the end.

    Raises:
        SystemExit: The step failed; the message is on stderr, the code as on the design page.
    """
    end_with_parent()
    began = time.monotonic()
    context: StepContext | None = None
    try:
        opened = open_project(project, overrides=overrides, data=data)
        # Read by torch and BLAS when they are imported, which is later.
        os.environ.setdefault("OMP_NUM_THREADS", str(threads_of(opened.settings.training)))
        record = StepRecord(step=name, run=current_run(), run_key=run_key)
        opening = StepContext(opened, project_store(opened, store), home(opened), record)
        _end_as_before(opening)
        context = opening
        signal.signal(signal.SIGTERM, _interrupted)
        context.holding.take_up(name)
        context.save()
        yield context
        context.holding.hush()
        if context.record.status == "running":
            context.record.status = "done"
        context.record.seconds = round(time.monotonic() - began, 3)
        context.save()
        if context.record.run_key:
            key = key_record(context.record.run_key, name)
            context.records.put(key, context.record.model_dump_json(indent=1).encode())
    except BaseException as error:  # noqa: BLE001 (every end is recorded, then said by exit code)
        if context is not None:
            context.holding.hush()
            error = context.holding.reason(error)
        code, status, reason, hint = _classify(error)
        if context is not None:
            context.record.status, context.record.exit_code = status, code
            context.record.reason, context.record.hint = reason, hint
            context.record.seconds = round(time.monotonic() - began, 3)
            try:
                context.save()
            except OutsideError as failure:
                print(f"and the record could not be written: {failure}", file=sys.stderr)
        if not isinstance(error, (EvertrainError, OutsideError, KeyboardInterrupt)):
            traceback.print_exception(error)
        print(f"{name}: {reason}" + (f"\nhint: {hint}" if hint else ""), file=sys.stderr)
        raise SystemExit(code) from None
    finally:
        if context is not None:
            context.holding.rest()


def threads_of(training: TrainingSettings) -> int:
    """CPU threads of one process: as the settings fix them, else its share of the cores."""
    return training.fixed_threads or max(1, (os.cpu_count() or 1) // training.processes)


def read_records(store: ObjectStore, run: str) -> dict[str, StepRecord]:
    """Return the records of a run by step, those of cached steps filled in from the run's key."""
    found = {}
    for name in EVERY_STEP:
        try:
            found[name] = StepRecord.model_validate_json(store.get(record_key(run, name)))
        except ObjectMissing:
            continue
    run_key = found["snapshot_data"].run_key if "snapshot_data" in found else ""
    reached = max((EVERY_STEP.index(name) for name in found if name != "report_run"), default=-1)
    for name in EVERY_STEP[1:reached]:
        if name not in found and run_key:
            try:
                content = store.get(key_record(run_key, name))
            except ObjectMissing:
                continue
            found[name] = StepRecord.model_validate_json(content)
            found[name].cache_hit = True
    return {name: found[name] for name in EVERY_STEP if name in found}


class _EndedBefore(EvertrainError):  # noqa: N818
    """An earlier attempt at this step in this run ended for good; its record stays as it is."""

    def __init__(self, record: StepRecord) -> None:
        super().__init__(record.reason, hint=record.hint)
        self.exit_code = record.exit_code


def _end_as_before(context: StepContext) -> None:
    """End a retry that cannot help (see `components.common.attempts`)."""
    if attempt() == 0:
        return
    try:
        content = context.store.get(record_key(context.record.run, context.record.step))
        earlier = StepRecord.model_validate_json(content)
    except (ObjectMissing, ValueError):
        return
    if earlier.status in ("stopped", "failed") and earlier.exit_code in FOR_GOOD:
        raise _EndedBefore(earlier)


def _classify(error: BaseException) -> tuple[int, Status, str, str]:
    """Exit code, status, reason and hint of an end."""
    from training_core.errors import StoppedByGate

    if isinstance(error, StoppedByGate):
        return error.exit_code, "stopped", error.what, error.hint
    if isinstance(error, (EvertrainError, OutsideError)):
        return error.exit_code, "failed", error.what, error.hint
    if isinstance(error, KeyboardInterrupt):
        return 130, "interrupted", "interrupted", "run the same command again: it goes on from here"
    if isinstance(error, (MemoryError, OSError)):
        return 3, "failed", f"{type(error).__name__}: {error}", "run the same command again"
    reason = f"{type(error).__name__}: {error}"
    return 1, "failed", reason, "the traceback is in the run's log; this may be a bug in the task"


def _interrupted(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
