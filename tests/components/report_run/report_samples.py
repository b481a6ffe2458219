"""Whole runs, from records as the steps leave them: what the report is tried on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from report_sample_checks import baselines, checks
from report_sample_data import snapshot, split, validation
from report_sample_findings import recorded
from report_sample_models import RUN, evaluation, promotion, selection, training
from report_sample_rich import chosen, extreme, many_classes, of_a_number, proposal, rich

from components.check_training.step import stop_if_broken
from components.common.records import STEPS, StepRecord
from components.common.run_record import RunRecord, StepSummary
from training_core.errors import StoppedByGate

KEY = "6f1d0c9b6a4e41f7b0b6d1c2a3e49c55"
STARTED = datetime(2013, 5, 1, 4, 12, 3, tzinfo=UTC)
SECONDS = dict(zip(STEPS, (2.1, 9.4, 3.3, 38.2, 21.7, 142.6, 11.9, 14.2, 2.6, 1.4), strict=True))
REPLAY = f"evertrain run examples/flights --replay {RUN}"
Records = dict[str, StepRecord]


def finished(verdict: str = "promote", *, first: bool = False) -> tuple[RunRecord, Records]:
    """A run that went all the way."""
    made = [
        snapshot(first=first),
        validation(first=first),
        split(),
        checks(),
        baselines(),
        training(),
        selection(),
        evaluation(verdict, first=first),
        promotion(verdict, first=first),
    ]
    return composed(dict(zip(STEPS, made, strict=False)), champion="" if first else "3")


def decided(evaluated: Any, promoted: Any = None) -> tuple[RunRecord, Records]:
    """A finished run whose decision says all that it can."""
    made = [snapshot(), validation(), split(), checks(), baselines(), training(), chosen()]
    made += [evaluated, promoted or promotion(evaluated.verdict)]
    return composed(dict(zip(STEPS, made, strict=False)), champion="3")


def stopped() -> tuple[RunRecord, Records]:
    """A run on bad data."""
    return composed(
        {"snapshot_data": snapshot(), "validate_data": validation(broken=True)},
        champion="3",
        bad=(
            "validate_data",
            "stopped",
            1,
            "1 blocking expectation failed: distance is −1 to 4,983, expected 0 to 6,000",
            "mend flights-2013-04.parquet at its source, then run again",
        ),
    )


def crashed(status: str = "failed") -> tuple[RunRecord, Records]:
    """A run whose training died."""
    made = [snapshot(), validation(), split(), checks(), baselines(), None]
    code, why = (
        (3, "")
        if status == "running"
        else (1, "the loss was not finite for 20 steps in a row, from step 96 on")
    )
    return composed(
        dict(zip(STEPS, made, strict=False)),
        champion="3",
        bad=("train_distributed", status, code, why, ""),
    )


def broken() -> tuple[RunRecord, Records]:
    """A run whose training code two checks found to be broken."""
    seen = recorded()
    try:
        stop_if_broken(seen)
    except StoppedByGate as stop:
        bad = ("check_training", "stopped", stop.exit_code, stop.what, stop.hint)
    made = [snapshot(), validation(), split(), seen]
    return composed(dict(zip(STEPS, made, strict=False)), champion="3", bad=bad)


def nothing_new() -> tuple[RunRecord, Records]:
    return composed({"snapshot_data": snapshot(decision="nothing_new")}, champion="3")


def skipped() -> tuple[RunRecord, Records]:
    why = "run 20130430T041201Z-11aa of eve@laptop holds the lease since 2013-04-30 04:12 UTC"
    return composed(
        {"snapshot_data": None}, champion="3", bad=("snapshot_data", "skipped", 0, why, "")
    )


def composed(
    made: dict[str, Any], *, champion: str, bad: tuple[str, str, int, str, str] | None = None
) -> tuple[RunRecord, Records]:
    """Records, and a run as `compose` would make it from them."""
    records: Records = {}
    at = STARTED
    for name, figures in made.items():
        record = StepRecord(
            step=name,
            run=RUN,
            run_key=KEY,
            status="done",
            started=at,
            seconds=SECONDS[name],
            cache_hit=name == "split_data",
        )
        if figures is not None:
            record.figures = figures.model_dump(mode="json")
        if bad and bad[0] == name:
            record.status, record.exit_code, record.reason, record.hint = bad[1:]
        records[name] = record
        at += timedelta(seconds=record.seconds + 1)
    seen, judged, promoted = (
        made.get(n) for n in ("snapshot_data", "evaluate_model", "promote_model")
    )
    status, code, hint, reasons = "finished", 0, "", []
    if bad:
        status = "interrupted" if bad[1] == "running" else bad[1]
        code, hint = bad[2], bad[4]
        reasons = [bad[3] or f"{bad[0]} was killed before it could say why"]
    elif seen and seen.decision == "nothing_new":
        status = "nothing_new"
        reasons = [
            "nothing new: data, code and configuration are those of run " + seen.same_key_run
        ]
    reasons += ([promoted.reason] if promoted else []) + (judged.reasons if judged else [])
    steps = [
        StepSummary(
            step=n,
            status="not_run"
            if n not in records
            else "interrupted"
            if records[n].status == "running"
            else records[n].status,
            seconds=records[n].seconds if n in records else 0.0,
            cache_hit=n in records and records[n].cache_hit,
            reason=records[n].reason if n in records else "",
        )
        for n in STEPS
    ]
    steps[-1] = StepSummary(
        step="report_run", status="done", seconds=1.4, cache_hit=False, reason=""
    )
    run = RunRecord(
        run=RUN,
        project="flights",
        key=KEY,
        status=status,
        exit_code=code,
        verdict=judged.verdict if judged else "",
        reasons=reasons,
        hint=hint,
        started=STARTED,
        seconds=(at - STARTED).total_seconds(),
        data_digest=seen.digest if seen else "",
        data_rows=seen.rows if seen else 0,
        steps=steps,
        metrics=judged.metrics if judged else {},
        champion_before=promoted.champion_before if promoted else champion,
        champion_after=promoted.champion_after if promoted else champion,
        commit="4be1c02d9f",
        report=f"runs/{RUN}/report.html",
    )
    return run, records


CASES = {
    "promoted": finished,
    "cold_start": lambda: finished(first=True),
    "held": lambda: finished("hold"),
    "inconclusive": lambda: finished("inconclusive"),
    "stopped": stopped,
    "broken": broken,
    "crashed": crashed,
    "interrupted": lambda: crashed("running"),
    "nothing_new": nothing_new,
    "skipped": skipped,
    "rich": lambda: decided(rich()),
    "rich_held": lambda: decided(rich("hold")),
    "rich_unsure": lambda: decided(rich("inconclusive")),
    "slice_worse": lambda: decided(rich("hold", worse=True)),
    "proposed": lambda: decided(rich(), proposal()),
    "many_classes": lambda: decided(many_classes()),
    "of_a_number": lambda: decided(of_a_number()),
    "extreme": lambda: decided(extreme()),
}
