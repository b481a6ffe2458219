"""Score the holdout with challenger, champion and baselines, and decide."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from components.common.artifacts import (
    ClassificationArtifact,
    MetricsArtifact,
    log_metrics,
    read_json,
    write_json,
)
from components.common.bootstrap import mean_interval
from components.common.champion import PromotionEntry, PromotionLog, champion_to_beat
from components.common.champion_model import load_entry
from components.common.decision_figures import Comparison, EvaluateFigures, Gate, ReliabilityBin
from components.common.layout import fetch_object
from components.common.records import StepContext, step
from components.common.rows import days_of, read_part, times_of, write_frame
from components.common.scores import Floats, mean_scores, row_scores
from components.common.settings import ProjectSettings
from components.evaluate_model.gates import baseline_gate, champion_gate, decide, floor_gates
from infra.errors import OutsideError
from training_core.errors import TrainingFailed

_BINS = 15
_ROC_POINTS = 100


class Outputs(NamedTuple):
    verdict: str


def run(
    project: str,
    store: str,
    overrides: list[str],
    run_key: str,
    splits: str,
    model: str,
    baselines: str,
    decision: str,
    metrics: MetricsArtifact,
    classification: ClassificationArtifact,
) -> Outputs:
    """See `component.py`."""
    with step(
        "evaluate_model", project=project, store=store, overrides=overrides, run_key=run_key
    ) as context:
        from training_core.package import Package

        settings = context.project.settings
        task = context.project.task()
        parts = read_json(splits)
        rows = read_part(context, parts, "holdout")
        truth = task.target(rows)
        predictions = {"challenger": Package(Path(model), type(task.preprocessor())).predict(rows)}
        champion = champion_to_beat(PromotionLog(context.store), run_key)
        gates: list[Gate] = []
        if champion is not None:
            scored, gate = score_champion(context, champion, rows, parts["seen"], task)
            if scored is not None:
                predictions["champion"] = scored
            if gate is not None:
                gates.append(gate)
        predictions |= _baseline_predictions(context, read_json(baselines))
        figures = compare(
            truth,
            predictions,
            clusters=days_of(rows, settings),
            settings=settings,
            first_gates=gates,
        )
        figures.compared_entry = champion.number if champion else 0
        figures.champion = champion.version if champion else ""
        figures.predictions = _keep_predictions(context, rows, truth, predictions, run_key)
        context.say(figures)
        write_json(decision, figures.model_dump(mode="json"))
        log_metrics(metrics, figures.metrics["challenger"])
        false_positive, true_positive, threshold = _roc(truth, predictions["challenger"])
        classification.log_roc_curve(false_positive, true_positive, threshold)
        classification.log_confusion_matrix(["no", "yes"], figures.confusion)
        write_json(classification.path, {"roc": figures.roc, "confusion": figures.confusion})
        return Outputs(figures.verdict)


def score_champion(
    context: StepContext,
    champion: PromotionEntry,
    rows: pd.DataFrame,
    seen_now: dict[str, str],
    task: Any,
) -> tuple[Floats | None, Gate | None]:
    """Score the champion on rows that it has not seen; a gate says why where that cannot be."""
    unseen = _is_unseen(champion.seen, rows, seen_now, context.project.settings)
    if unseen is not None:
        return None, _skipped(unseen)
    try:
        scored = load_entry(context.store, champion, task, context.cache).predict(rows)
        if not np.isfinite(scored).all():
            return None, _skipped(f"champion {champion.version} gives predictions not finite")
        return scored, None
    except (TrainingFailed, KeyError, OutsideError) as error:
        words = error.args[0] if error.args else type(error).__name__
        return None, _skipped(f"champion {champion.version} cannot score these rows: {words}")


def _skipped(words: str) -> Gate:
    return Gate(
        name="champion", outcome="skipped", observed="–", threshold="a fair comparison",
        message=words,
    )  # fmt: skip


def _is_unseen(
    seen: dict[str, str], rows: pd.DataFrame, seen_now: dict[str, str], settings: ProjectSettings
) -> str | None:
    """None if the champion has not seen these rows; otherwise why that is not sure."""
    if seen.get("by") == "time" and settings.data.time_column:
        first = times_of(rows, settings.data.time_column).min()
        if first > pd.Timestamp(seen["until"]):
            return None
        return (
            f"the champion was trained on data up to {seen['until']}, and the holdout begins "
            f"{first.isoformat()}: it has seen some of these rows"
        )
    if seen.get("by") == "hash" and seen == seen_now:
        return None  # the same rule keeps the same rows held out, whatever was added
    return "the splits are made by another rule than the champion's: it may have seen these rows"


def compare(
    truth: npt.NDArray[np.float32],
    predictions: dict[str, Floats],
    *,
    clusters: Any,
    settings: ProjectSettings,
    first_gates: list[Gate],
) -> EvaluateFigures:
    """Compare the challenger with every other model, row by row, and decide.

    Args:
        truth: float32 [N].
        predictions: By model, each float64 [N]; `challenger` is the first.
        clusters: The cluster of each row.
        settings: Of the project.
        first_gates: Gates that were decided before (a champion that could not be scored).
    """
    rule = settings.decision
    rows = {name: row_scores(truth, p) for name, p in predictions.items()}
    scores = {name: mean_scores(truth, p) for name, p in predictions.items()}
    comparisons = []
    for name in predictions:
        if name != "challenger":
            interval = mean_interval(
                rows[name][rule.metric] - rows["challenger"][rule.metric],
                clusters,
                confidence=rule.confidence,
                resamples=rule.resamples,
                noise=rule.retraining_noise or 0.0,
            )
            comparisons.append(
                Comparison(
                    against=name,
                    difference=interval.mean,
                    low=interval.low,
                    high=interval.high,
                    noise=rule.retraining_noise or 0.0,
                    clusters=interval.clusters,
                )
            )
    by_name = {c.against: c for c in comparisons}
    gates = [*floor_gates(scores["challenger"], rule), *first_gates]
    gates += [baseline_gate(by_name[name], rule) for name in rule.must_beat]
    if "champion" in by_name:
        gates.append(champion_gate(by_name["champion"], rule))
    verdict, reasons = decide(gates)
    bins = {
        name: reliability(truth, p)
        for name, p in predictions.items()
        if name in ("challenger", "champion")
    }
    false_positive, true_positive, _ = _roc(truth, predictions["challenger"])
    positive, predicted = truth >= 0.5, predictions["challenger"] >= 0.5
    return EvaluateFigures(
        verdict=verdict,
        reasons=reasons,
        metric=rule.metric,
        rows=len(truth),
        clusters=len(pd.unique(pd.Series(np.asarray(clusters)))),
        compared_entry=0,
        champion="",
        metrics=scores,
        comparisons=comparisons,
        gates=gates,
        reliability=bins,
        calibration_error={
            name: sum(b.rows * abs(b.predicted - b.observed) for b in found) / len(truth)
            for name, found in bins.items()
        },
        roc=list(zip(false_positive, true_positive, strict=True)),
        confusion=[
            [int((~positive & ~predicted).sum()), int((~positive & predicted).sum())],
            [int((positive & ~predicted).sum()), int((positive & predicted).sum())],
        ],
        predictions="",
    )


def reliability(truth: npt.NDArray[np.float32], probability: Floats) -> list[ReliabilityBin]:
    """Mean prediction and rate of yes in bins of equally many rows."""
    edges = np.unique(np.quantile(probability, np.linspace(0, 1, _BINS + 1))[1:-1])
    places = np.searchsorted(edges, probability, side="right")
    found = []
    for place in np.unique(places):
        inside = places == place
        found.append(
            ReliabilityBin(
                predicted=float(probability[inside].mean()),
                observed=float(truth[inside].mean()),
                rows=int(inside.sum()),
            )
        )
    return found


def _roc(
    truth: npt.NDArray[np.float32], probability: Floats
) -> tuple[list[float], list[float], list[float]]:
    """A ROC curve of at most a hundred points, its thresholds finite."""
    from sklearn.metrics import roc_curve

    false_positive, true_positive, threshold = roc_curve(truth >= 0.5, probability)
    picked = np.unique(np.linspace(0, len(threshold) - 1, _ROC_POINTS).astype(int))
    finite = np.minimum(threshold, 1.0)
    return (
        false_positive[picked].tolist(), true_positive[picked].tolist(), finite[picked].tolist()
    )  # fmt: skip


def _baseline_predictions(context: StepContext, baselines: dict[str, Any]) -> dict[str, Floats]:
    path = fetch_object(context.store, baselines["holdout_predictions"], context.cache)
    frame = pd.read_parquet(path)
    return {str(name): frame[name].to_numpy(dtype=np.float64) for name in frame.columns}


def _keep_predictions(
    context: StepContext,
    rows: pd.DataFrame,
    truth: npt.NDArray[np.float32],
    predictions: dict[str, Floats],
    run_key: str,
) -> str:
    """Store every model's prediction for every holdout row, with the row's key."""
    kept = rows[context.project.settings.data.row_key].assign(truth=truth, **predictions)
    scratch = context.home / "scratch" / f"{run_key}-predictions"
    return f"objects/{write_frame(context.store, kept, scratch)}"
