"""Records of runs as the steps leave them: what the report is tried on."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta
from typing import Any

from components.common import figures as f
from components.common.records import STEPS, StepRecord
from components.common.run_record import RunRecord, StepSummary

RUN = "20130501T041203Z-7f3a"
KEY = "6f1d0c9b6a4e41f7b0b6d1c2a3e49c55"
STARTED = datetime(2013, 5, 1, 4, 12, 3, tzinfo=UTC)
SECONDS = dict(zip(STEPS, (2.1, 9.4, 3.3, 38.2, 21.7, 142.6, 11.9, 14.2, 2.6, 1.4), strict=True))
REPLAY = f"evertrain run examples/flights --replay {RUN}"
Records = dict[str, StepRecord]


def snapshot(*, decision: str = "train", first: bool = False) -> f.SnapshotFigures:
    months = (("01", 27004), ("02", 24951), ("03", 28834), ("04", 28330))
    return f.SnapshotFigures(
        digest="sha256:9b1c44e08d7f2a60c5a1",
        source="s3://flights/landing",
        rows=sum(rows for _, rows in months),
        objects=[
            f.DataObject(
                key=f"flights-2013-{month}.parquet",
                size=rows * 31,
                version=f"v{month}",
                sha256=f"{month}c0ffee" * 8,
                rows=rows,
                new=first or month == "04",
            )
            for month, rows in months
        ],
        decision=decision,
        same_key_run="20130430T041201Z-11aa" if decision == "nothing_new" else "",
        provenance=f.Provenance(
            code_digest="sha256:51c2aa07e1",
            config_digest="sha256:d0e9f1b37c",
            commit="4be1c02d9f",
            dirty=False,
            image_digest="",
            python="3.11.9",
            packages={"torch": "2.13.0", "numpy": "2.4.1", "great-expectations": "1.24.0"},
            config={
                "name": "flights",
                "split": {"by": "time", "holdout": 14, "validation": 14},
                "training": {"epochs": 3, "batch_size": 1024},
                "decision": {"metric": "log_loss", "confidence": 0.95, "cluster": "day",
                             "retraining_noise": 0.0008, "margin": 0.001},
            },
        ),
    )


def validation(*, broken: bool = False, first: bool = False) -> f.ValidateFigures:
    drift = [
        ("temperature", 0.412, "52.8", "38.1"), ("dew_point", 0.268, "38.0", "25.4"),
        ("origin_late_yesterday", 0.131, "0.22", "0.19"), ("wind_speed", 0.072, "10.9", "11.6"),
        ("pressure", 0.064, "1017.3", "1018.9"), ("carrier_late_yesterday", 0.051, "0.21", "0.19"),
        ("dest", 0.033, "ATL", "ATL"), ("carrier", 0.021, "UA", "UA"),
        ("hour", 0.004, "13.2", "13.1"), ("distance", 0.003, "1034", "1008"),
        ("seats", 0.002, "137", "136"), ("origin", 0.001, "EWR", "EWR"),
        ("weekday", 0.001, "2.97", "2.91"), ("engine", 0.001, "Turbo-fan", "Turbo-fan"),
    ]
    expectations = [
        f.Expectation(name="columns_exist", column="", severity="critical", success=True,
                      expected="27 columns", observed="27 columns"),
        f.Expectation(name="values_between", column="distance", severity="critical",
                      success=not broken, expected="0 to 6,000",
                      observed="−1 to 4,983" if broken else "80 to 4,983"),
        f.Expectation(name="null_share", column="late", severity="critical", success=True,
                      expected="at most 8 %", observed="2.4 %"),
        f.Expectation(name="mean_between", column="temperature", severity="warning",
                      success=False, expected="20 to 50", observed="52.8"),
    ]
    return f.ValidateFigures(
        rows=109119,
        quarantined={"pressure_possible": 12, "seats_possible": 3},
        expectations=expectations,
        warnings=1,
        reference="" if first else "the training data of version 3",
        drift=[] if first else [
            f.ColumnDrift(column=c, psi=p, now=n, before=b, null_now=0.021, null_before=0.018)
            for c, p, n, b in drift
        ],
        leaks=[f.Leak(column="departure_delay", auc=0.998)] if broken else [],
    )


def split() -> f.SplitFigures:
    return f.SplitFigures(
        parts={
            "train": f.Part(rows=81004, start="2013-01-01T00:00:00+00:00",
                            end="2013-04-03T00:00:00+00:00", positive_rate=0.2031),
            "validation": f.Part(rows=12711, start="2013-04-03T00:00:00+00:00",
                                 end="2013-04-17T00:00:00+00:00", positive_rate=0.2274),
            "holdout": f.Part(rows=12789, start="2013-04-17T00:00:00+00:00",
                              end="2013-05-01T00:00:00+00:00", positive_rate=0.2188),
        },
        unlabelled=2600,
        rule="by time_hour: the last 14 days are the holdout, the 14 before it validation",
        proof=["no row key is in two parts", "every train row is older than every validation row",
               "both classes are in every part"],
    )


def checks(*, broken: bool = False) -> f.CheckFigures:
    fall = [(s, 0.69 * math.exp(-s / 60) + 0.004) for s in range(0, 400, 4)]
    real = [(s, 0.47 + 0.22 * math.exp(-s / 40)) for s in range(0, 300, 3)]
    blind = [(s, 0.51 + 0.18 * math.exp(-s / 40)) for s in range(0, 300, 3)]
    return f.CheckFigures(
        checks=[
            f.Check(name="loss_at_initialisation", verdict="pass", measured=0.701, limit=0.866,
                    message="0.701 is what ignorance costs (0.693)"),
            f.Check(name="overfit_one_batch", verdict="fail" if broken else "pass",
                    measured=0.61 if broken else 0.0049, limit=0.05,
                    message="32 rows were learned by heart" if not broken else "the loss stays"),
            f.Check(name="learns_from_inputs", verdict="pass", measured=0.041, limit=0.0,
                    message="real inputs beat shuffled ones"),
            f.Check(name="gradient_dependency", verdict="pass", measured=0.0, limit=0.0,
                    message="no row’s loss depends on another row"),
            f.Check(name="throughput", verdict="skipped", measured=None, limit=None,
                    message="only measured on a GPU"),
        ],
        curves={"overfit_one_batch": fall, "real_inputs": real, "input_independent": blind},
    )


def baselines() -> f.BaselineFigures:
    return f.BaselineFigures(validation={
        "prior": {"log_loss": 0.5368, "brier": 0.1759, "error": 0.2274, "auc": 0.5},
        "input_independent": {"log_loss": 0.5371, "brier": 0.1760, "error": 0.2274, "auc": 0.5},
        "table": {"log_loss": 0.5012, "brier": 0.1630, "error": 0.2251, "auc": 0.673},
        "logistic": {"log_loss": 0.4861, "brier": 0.1572, "error": 0.2190, "auc": 0.709},
    })


def training() -> f.TrainFigures:
    rng = random.Random(1)  # noqa: S311
    curve = [
        f.TrainPoint(step=s, loss=0.425 + 0.26 * math.exp(-s / 18) + rng.gauss(0, 0.008),
                     lr=0.001, gradient_norm=0.4, samples_per_second=41000.0)
        for s in range(1, 238)
    ]
    steps = [24, 48, 72, 96, 120, 144, 168, 192, 216, 237]
    scores = [0.4998, 0.4870, 0.4812, 0.4781, 0.4766, 0.4758, 0.4752, 0.4757, 0.4761, 0.4764]
    return f.TrainFigures(
        parameters=41921, steps=237, samples=242688, epochs=3.0, processes=2, device="cpu",
        precision="fp32", resumed_from=0, skipped_steps=0, stop_reason="all epochs done",
        samples_per_second=40312.0, curve=curve,
        evaluations=[
            f.EvaluationPoint(step=s, metrics={"log_loss": v, "brier": v * 0.32, "auc": 0.73})
            for s, v in zip(steps, scores, strict=True)
        ],
        checkpoints=[144, 168, 192, 237], damaged=[],
    )


def selection() -> f.SelectFigures:
    found = {144: 0.4758, 168: 0.4752, 192: 0.4757, 237: 0.4764}
    return f.SelectFigures(
        metric="log_loss",
        rule="the earliest checkpoint whose interval of the difference to the best holds zero",
        candidates=[
            f.Candidate(step=s, metrics={"log_loss": v, "auc": 0.732}, low=v - 0.0091,
                        high=v + 0.0094)
            for s, v in found.items()
        ],
        chosen=168, damaged=["step 216: shard model-0 does not match its hash"],
    )


def evaluation(verdict: str = "promote", *, first: bool = False) -> f.EvaluateFigures:
    against = {"promote": (0.0046, 0.0018, 0.0075), "hold": (-0.0061, -0.0092, -0.0029),
               "inconclusive": (0.0009, -0.0021, 0.0038)}[verdict]
    comparisons = [
        f.Comparison(against=name, difference=d, low=low, high=high, noise=0.0008, clusters=14)
        for name, (d, low, high) in {
            "champion": against, "prior": (0.0601, 0.0490, 0.0718),
            "input_independent": (0.0604, 0.0492, 0.0721), "table": (0.0262, 0.0198, 0.0329),
            "logistic": (0.0113, 0.0071, 0.0158),
        }.items()
        if not (first and name == "champion")
    ]
    word = {"promote": "pass", "hold": "fail", "inconclusive": "unsure"}[verdict]
    gates = [
        f.Gate(name="not_worse_than_champion", outcome="skipped" if first else word,
               observed="none" if first else f"{against[1]} to {against[2]}",
               threshold="lower end above −0.001",
               message="there is no champion yet" if first else "paired by row, drawn by day"),
        f.Gate(name="beats_prior", outcome="pass", observed="0.0490 to 0.0718",
               threshold="lower end above 0", message=""),
        f.Gate(name="beats_input_independent", outcome="pass", observed="0.0492 to 0.0721",
               threshold="lower end above 0", message=""),
        f.Gate(name="floor_log_loss", outcome="pass", observed="0.4702",
               threshold="at most 0.53", message=""),
        f.Gate(name="minimum_auc", outcome="pass", observed="0.738", threshold="at least 0.65",
               message=""),
    ]
    bins = [(0.06, 0.055, 2411), (0.11, 0.118, 3120), (0.17, 0.165, 2604), (0.24, 0.251, 1898),
            (0.33, 0.322, 1290), (0.43, 0.449, 811), (0.54, 0.531, 420), (0.66, 0.69, 180)]
    curve = [(i / 100, (i / 100) ** 0.42) for i in range(101)]
    metrics = {
        "challenger": {"log_loss": 0.4702, "brier": 0.1511, "error": 0.2102, "auc": 0.738},
        "champion": {"log_loss": 0.4748, "brier": 0.1529, "error": 0.2121, "auc": 0.729},
        "prior": {"log_loss": 0.5303, "brier": 0.1731, "error": 0.2188, "auc": 0.5},
        "logistic": {"log_loss": 0.4815, "brier": 0.1553, "error": 0.2140, "auc": 0.715},
    }
    reliability = {
        "challenger": [f.ReliabilityBin(predicted=p, observed=o, rows=n) for p, o, n in bins],
        "champion": [f.ReliabilityBin(predicted=p, observed=o * 1.12, rows=n) for p, o, n in bins],
    }
    if first:
        metrics.pop("champion"), reliability.pop("champion")
    return f.EvaluateFigures(
        verdict=verdict,
        reasons=[f"the interval of the difference in log loss is {against[1]} to {against[2]}"],
        metric="log_loss", rows=12789, clusters=14, compared_entry=0 if first else 3,
        champion="" if first else "3", metrics=metrics, comparisons=comparisons, gates=gates,
        reliability=reliability,
        calibration_error={"challenger": 0.0094, "champion": 0.0231},
        roc=curve, confusion=[[9588, 403], [2286, 512]],
        predictions=f"runs/{RUN}/predictions.parquet",
    )


def promotion(verdict: str = "promote", *, first: bool = False) -> f.PromoteFigures:
    before = "" if first else "3"
    if verdict == "promote":
        reason = "the challenger passed every gate"
        if not first:
            reason = "the challenger beats version 3 on log loss by more than chance and noise"
        return f.PromoteFigures(outcome="promoted", reason=reason, version="1" if first else "4",
                                entry=1 if first else 4, champion_before=before,
                                champion_after="1" if first else "4")
    reason = {"hold": "the challenger is worse than version 3 on log loss",
              "inconclusive": "14 days cannot tell the challenger from version 3"}[verdict]
    return f.PromoteFigures(outcome="held", reason=reason, version="", entry=0,
                            champion_before=before, champion_after=before)


def finished(verdict: str = "promote", *, first: bool = False) -> tuple[RunRecord, Records]:
    """A run that went all the way."""
    made = [snapshot(first=first), validation(first=first), split(), checks(), baselines(),
            training(), selection(), evaluation(verdict, first=first),
            promotion(verdict, first=first)]
    return composed(dict(zip(STEPS, made, strict=False)), champion="" if first else "3")


def stopped() -> tuple[RunRecord, Records]:
    """A run on bad data."""
    return composed(
        {"snapshot_data": snapshot(), "validate_data": validation(broken=True)},
        champion="3",
        bad=("validate_data", "stopped", 1,
             "1 blocking expectation failed: distance is −1 to 4,983, expected 0 to 6,000",
             "mend flights-2013-04.parquet at its source, then run again"),
    )


def crashed(status: str = "failed") -> tuple[RunRecord, Records]:
    """A run whose training died."""
    made = [snapshot(), validation(), split(), checks(), baselines(), None]
    code, why = (3, "") if status == "running" else (
        1, "the loss was not finite for 20 steps in a row, from step 96 on")
    return composed(dict(zip(STEPS, made, strict=False)), champion="3",
                    bad=("train_distributed", status, code, why, ""))


def nothing_new() -> tuple[RunRecord, Records]:
    return composed({"snapshot_data": snapshot(decision="nothing_new")}, champion="3")


def composed(
    made: dict[str, Any], *, champion: str, bad: tuple[str, str, int, str, str] | None = None
) -> tuple[RunRecord, Records]:
    """Records, and a run as `compose` would make it from them."""
    records: Records = {}
    at = STARTED
    for name, figures in made.items():
        record = StepRecord(step=name, run=RUN, run_key=KEY, status="done", started=at,
                            seconds=SECONDS[name], cache_hit=name == "split_data")
        if figures is not None:
            record.figures = figures.model_dump(mode="json")
        if bad and bad[0] == name:
            record.status, record.exit_code, record.reason, record.hint = bad[1:]
        records[name] = record
        at += timedelta(seconds=record.seconds + 1)
    seen, judged, promoted = (made.get(n) for n in ("snapshot_data", "evaluate_model",
                                                     "promote_model"))
    status, code, hint, reasons = "finished", 0, "", []
    if bad:
        status = "interrupted" if bad[1] == "running" else bad[1]
        code, hint = bad[2], bad[4]
        reasons = [bad[3] or f"{bad[0]} was killed before it could say why"]
    elif seen and seen.decision == "nothing_new":
        status = "nothing_new"
        reasons = ["nothing new: data, code and configuration are those of run "
                   + seen.same_key_run]
    reasons += ([promoted.reason] if promoted else []) + (judged.reasons if judged else [])
    steps = [
        StepSummary(
            step=n,
            status="not_run" if n not in records
            else "interrupted" if records[n].status == "running" else records[n].status,
            seconds=records[n].seconds if n in records else 0.0,
            cache_hit=n in records and records[n].cache_hit,
            reason=records[n].reason if n in records else "",
        )
        for n in STEPS
    ]
    steps[-1] = StepSummary(step="report_run", status="done", seconds=1.4, cache_hit=False,
                            reason="")
    run = RunRecord(
        run=RUN, project="flights", key=KEY, status=status, exit_code=code,
        verdict=judged.verdict if judged else "", reasons=reasons, hint=hint, started=STARTED,
        seconds=(at - STARTED).total_seconds(), data_digest=seen.digest if seen else "",
        data_rows=seen.rows if seen else 0, steps=steps,
        metrics=judged.metrics if judged else {},
        champion_before=promoted.champion_before if promoted else champion,
        champion_after=promoted.champion_after if promoted else champion,
        commit="4be1c02d9f", report=f"runs/{RUN}/report.html",
    )
    return run, records


CASES = {
    "promoted": finished,
    "cold_start": lambda: finished(first=True),
    "held": lambda: finished("hold"),
    "inconclusive": lambda: finished("inconclusive"),
    "stopped": stopped,
    "crashed": crashed,
    "interrupted": lambda: crashed("running"),
    "nothing_new": nothing_new,
}
