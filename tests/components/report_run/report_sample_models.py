"""Figures of training, selection, evaluation and promotion, as a run leaves them."""

from __future__ import annotations

import math
import random

from components.common import decision_figures as d
from components.common import figures as f

RUN = "20130501T041203Z-7f3a"


def training() -> f.TrainFigures:
    rng = random.Random(1)
    curve = [
        f.TrainPoint(
            step=s,
            loss=0.425 + 0.26 * math.exp(-s / 18) + rng.gauss(0, 0.008),
            lr=0.001,
            gradient_norm=0.4,
            samples_per_second=41000.0,
        )
        for s in range(1, 238)
    ]
    steps = [24, 48, 72, 96, 120, 144, 168, 192, 216, 237]
    scores = [0.4998, 0.4870, 0.4812, 0.4781, 0.4766, 0.4758, 0.4752, 0.4757, 0.4761, 0.4764]
    return f.TrainFigures(
        parameters=41921,
        steps=237,
        samples=242688,
        epochs=3.0,
        processes=2,
        nodes=2,
        device="cpu",
        precision="fp32",
        resumed_from=0,
        skipped_steps=0,
        stop_reason="all epochs done",
        samples_per_second=40312.0,
        curve=curve,
        evaluations=[
            f.EvaluationPoint(step=s, metrics={"log_loss": v, "brier": v * 0.32, "auc": 0.73})
            for s, v in zip(steps, scores, strict=True)
        ],
        checkpoints=[144, 168, 192, 237],
        damaged=[],
    )


def selection() -> d.SelectFigures:
    found = {144: 0.4758, 168: 0.4752, 192: 0.4757, 237: 0.4764}
    return d.SelectFigures(
        metric="log_loss",
        rule="the earliest checkpoint whose interval of the difference to the best holds zero",
        candidates=[
            d.Candidate(
                step=s, metrics={"log_loss": v, "auc": 0.732}, low=v - 0.0091, high=v + 0.0094
            )
            for s, v in found.items()
        ],
        chosen=168,
        damaged=["step 216: shard model-0 does not match its hash"],
    )


def evaluation(verdict: str = "promote", *, first: bool = False) -> d.EvaluateFigures:
    against = {
        "promote": (0.0046, 0.0018, 0.0075),
        "hold": (-0.0061, -0.0092, -0.0029),
        "inconclusive": (0.0009, -0.0021, 0.0038),
    }[verdict]
    comparisons = [
        d.Comparison(against=name, difference=mean, low=low, high=high, noise=0.0008, clusters=14)
        for name, (mean, low, high) in {
            "champion": against,
            "prior": (0.0601, 0.0490, 0.0718),
            "input_independent": (0.0604, 0.0492, 0.0721),
            "table": (0.0262, 0.0198, 0.0329),
            "linear": (0.0113, 0.0071, 0.0158),
            "trees": (0.0024, -0.0021, 0.0069),
        }.items()
        if not (first and name == "champion")
    ]
    word = {"promote": "pass", "hold": "fail", "inconclusive": "unsure"}[verdict]
    gates = [
        d.Gate(
            name="not_worse_than_champion",
            outcome="skipped" if first else word,
            observed="none" if first else f"{against[1]} to {against[2]}",
            threshold="lower end above −0.001",
            message="there is no champion yet" if first else "paired by row, drawn by day",
        ),
        d.Gate(
            name="beats_prior",
            outcome="pass",
            observed="0.0490 to 0.0718",
            threshold="lower end above 0",
            message="",
        ),
        d.Gate(
            name="beats_input_independent",
            outcome="pass",
            observed="0.0492 to 0.0721",
            threshold="lower end above 0",
            message="",
        ),
        d.Gate(
            name="floor_log_loss",
            outcome="pass",
            observed="0.4702",
            threshold="at most 0.53",
            message="",
        ),
        d.Gate(
            name="minimum_auc",
            outcome="pass",
            observed="0.738",
            threshold="at least 0.65",
            message="",
        ),
    ]
    bins = [
        (0.06, 0.055, 2411),
        (0.11, 0.118, 3120),
        (0.17, 0.165, 2604),
        (0.24, 0.251, 1898),
        (0.33, 0.322, 1290),
        (0.43, 0.449, 811),
        (0.54, 0.531, 420),
        (0.66, 0.69, 180),
    ]
    curve = [(i / 100, (i / 100) ** 0.42) for i in range(101)]
    metrics = {
        "challenger": {"log_loss": 0.4702, "brier": 0.1511, "error": 0.2102, "auc": 0.738},
        "champion": {"log_loss": 0.4748, "brier": 0.1529, "error": 0.2121, "auc": 0.729},
        "prior": {"log_loss": 0.5303, "brier": 0.1731, "error": 0.2188, "auc": 0.5},
        "linear": {"log_loss": 0.4815, "brier": 0.1553, "error": 0.2140, "auc": 0.715},
        "trees": {"log_loss": 0.4726, "brier": 0.1519, "error": 0.2108, "auc": 0.733},
    }
    reliability = {
        "challenger": [d.ReliabilityBin(predicted=p, observed=o, rows=n) for p, o, n in bins],
        "champion": [d.ReliabilityBin(predicted=p, observed=o * 1.12, rows=n) for p, o, n in bins],
    }
    if not first:
        metrics["challenger"]["log_loss"] = round(0.4748 - against[0], 4)
    if first:
        metrics.pop("champion"), reliability.pop("champion")
    return d.EvaluateFigures(
        verdict=verdict,
        reasons=[f"the interval of the difference in log loss is {against[1]} to {against[2]}"],
        metric="log_loss",
        rows=12789,
        clusters=14,
        compared_entry=0 if first else 3,
        champion="" if first else "3",
        metrics=metrics,
        comparisons=comparisons,
        gates=gates,
        reliability=reliability,
        calibration_error={"challenger": 0.0094, "champion": 0.0231},
        roc=curve,
        confusion=[[9588, 403], [2286, 512]],
        predictions=f"runs/{RUN}/predictions.parquet",
    )


def promotion(verdict: str = "promote", *, first: bool = False) -> d.PromoteFigures:
    before = "" if first else "3"
    if verdict == "promote":
        reason = "the challenger passed every gate"
        if not first:
            reason = "the challenger beats version 3 on log loss by more than chance and noise"
        return d.PromoteFigures(
            outcome="promoted",
            reason=reason,
            version="1" if first else "4",
            entry=1 if first else 4,
            champion_before=before,
            champion_after="1" if first else "4",
        )
    reason = {
        "hold": "the challenger is worse than version 3 on log loss",
        "inconclusive": "14 days cannot tell the challenger from version 3",
    }[verdict]
    return d.PromoteFigures(
        outcome="held",
        reason=reason,
        version="",
        entry=0,
        champion_before=before,
        champion_after=before,
    )
