"""`run.json`: a whole run on one page of data, composed from the records of its steps.

Its JSON Schema is `docs/run.schema.json`, kept equal to these classes by a test.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from components.common.data_figures import SnapshotFigures
from components.common.decision_figures import EvaluateFigures, PromoteFigures
from components.common.records import EVERY_STEP, STEPS, StepRecord, read_records
from infra.store import ObjectStore

RunStatus = Literal["finished", "nothing_new", "skipped", "stopped", "failed", "interrupted"]
Verdict = Literal["promote", "hold", "inconclusive", ""]
F = TypeVar("F", bound=BaseModel)


class StepSummary(BaseModel):
    """One step of a run."""

    model_config = ConfigDict(extra="forbid")

    step: str
    status: Literal["done", "skipped", "stopped", "failed", "interrupted", "not_run"]
    seconds: float
    cache_hit: bool
    reason: str


class RunRecord(BaseModel):
    """What a run did and why.

    Attributes:
        run: Its id; sorts by time.
        key: Hash of data, code and configuration; empty if the run ended before it was known.
        status: `nothing_new`: a run with this key had already finished; `skipped`: another run was
            under way.
        exit_code: Of `evertrain run`, as on the design page.
        verdict: Of evaluate_model; empty if the run did not get there.
        decision: Of promote_model: what came of the verdict; empty if the run did not get there.
        reasons: Why it ended as it did, in sentences, the most important first.
        metrics: Model (challenger, champion, each baseline) to metric to value, on the holdout.
        champion_before, champion_after: Registered versions; empty: none.
        report: Key of the report page in the object store.
    """

    model_config = ConfigDict(extra="forbid")

    format: Literal["evertrain/run/1"] = "evertrain/run/1"
    run: str
    project: str
    key: str
    status: RunStatus
    exit_code: int
    verdict: Verdict
    reasons: list[str]
    hint: str
    started: datetime | None
    seconds: float
    data_digest: str
    data_rows: int
    steps: list[StepSummary]
    metrics: dict[str, dict[str, float]] = Field(default_factory=dict)
    champion_before: str
    champion_after: str
    commit: str
    report: str
    decision: Literal["promoted", "proposed", "held", ""] = ""


def run_record_key(run: str) -> str:
    return f"runs/{run}/run.json"


def report_key(run: str) -> str:
    return f"runs/{run}/report.html"


def report_data_key(run: str) -> str:
    """Of the report's twin, the same as data."""
    return f"runs/{run}/report.json"


def compose(store: ObjectStore, *, run: str, project: str, champion: str) -> RunRecord:
    """Compose a run's record from what its steps left.

    Args:
        store: The project's object store.
        run: The run's id.
        project: The project's name.
        champion: The version that is champion now, for runs that did not get to promote_model.
    """
    records = read_records(store, run)
    snapshot = _figures(records, "snapshot_data", SnapshotFigures)
    evaluated = _figures(records, "evaluate_model", EvaluateFigures)
    promoted = _figures(records, "promote_model", PromoteFigures)
    bad = next((r for n, r in records.items() if r.status != "done" and n != "report_run"), None)
    status: RunStatus
    reasons: list[str] = []
    if bad is not None:
        status = "interrupted" if bad.status == "running" else _run_status(bad)
        reasons = [bad.reason or f"{bad.step} was killed before it could say why"]
    elif snapshot is not None and snapshot.decision == "nothing_new":
        status = "nothing_new"
        reasons = [
            f"nothing new: data, code and configuration are those of run {snapshot.same_key_run}"
        ]
    elif promoted is not None:
        status = "finished"
    else:
        last = next((name for name in reversed(records) if name != "report_run"), "the start")
        status, reasons = "interrupted", [f"the run ended after {last} without a decision"]
    if promoted is not None:
        reasons.append(promoted.reason)
    if evaluated is not None:
        said = " ".join(reasons)
        reasons.extend(reason for reason in evaluated.reasons if reason not in said)
    started = min((r.started for r in records.values()), default=None)
    ended = max(
        (r.started.timestamp() + r.seconds for r in records.values() if not r.cache_hit),
        default=0.0,
    )
    began = min((r.started.timestamp() for r in records.values() if not r.cache_hit), default=0.0)
    return RunRecord(
        run=run,
        project=project,
        key=next((r.run_key for r in records.values() if r.run_key), ""),
        status=status,
        exit_code=_exit_code(status, bad),
        verdict=evaluated.verdict if evaluated else "",
        reasons=list(dict.fromkeys(reasons)),
        hint=bad.hint if bad else "",
        started=started,
        seconds=round(ended - began, 3),
        data_digest=snapshot.digest if snapshot else "",
        data_rows=snapshot.rows if snapshot else 0,
        steps=[
            _summary(name, records.get(name))
            for name in EVERY_STEP
            if name in STEPS or name in records
        ],
        metrics=evaluated.metrics if evaluated else {},
        champion_before=promoted.champion_before if promoted else champion,
        champion_after=promoted.champion_after if promoted else champion,
        commit=snapshot.provenance.commit if snapshot else "",
        report=report_key(run),
        decision=promoted.outcome if promoted else "",
    )


def _run_status(record: StepRecord) -> RunStatus:
    return record.status if record.status in ("skipped", "stopped", "interrupted") else "failed"


def _exit_code(status: RunStatus, bad: StepRecord | None) -> int:
    if status in ("finished", "nothing_new", "skipped"):
        return 0
    if bad is not None and bad.exit_code:
        return bad.exit_code
    return 3  # killed from outside: a retry may help


def _summary(name: str, record: StepRecord | None) -> StepSummary:
    if record is None:
        return StepSummary(step=name, status="not_run", seconds=0.0, cache_hit=False, reason="")
    status = "interrupted" if record.status == "running" else record.status
    seconds = record.seconds
    if name == "report_run" and record.status == "running":
        status = "done"  # it is the one that composes this
        seconds = round((datetime.now(UTC) - record.started).total_seconds(), 3)
    return StepSummary(
        step=name,
        status=status,
        seconds=seconds,
        cache_hit=record.cache_hit,
        reason=record.reason,
    )


def _figures(records: dict[str, StepRecord], name: str, kind: type[F]) -> F | None:
    record = records.get(name)
    return kind.model_validate(record.figures) if record and record.figures else None
