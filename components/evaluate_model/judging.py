"""From predictions to a verdict: every figure of the decision, from plain arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from components.common.decision_figures import (
    EvaluateFigures,
    Gate,
    NoiseFigure,
    Optimism,
    QuestionFigure,
    SmokeFigures,
)
from components.common.decision_settings import DecisionSettings
from components.common.metrics import METRICS, Floats, direction
from components.common.resampling import Noise
from components.evaluate_model.comparing import CHALLENGER, CHAMPION, Holdout, Models
from components.evaluate_model.curves import confusion, reliability, roc
from components.evaluate_model.gates import (
    baseline_gate,
    calibration_gate,
    champion_gate,
    decide,
    floor_gates,
    package_gates,
    slice_gate,
)
from components.evaluate_model.slice_figures import find_slices, slice_figures
from training_core.errors import ConfigurationError


def judge(
    holdout: Holdout,
    predictions: Mapping[str, Floats],
    *,
    settings: DecisionSettings,
    noise: NoiseFigure,
    smoke: SmokeFigures | None,
    question: QuestionFigure | None = None,
    first_gates: Sequence[Gate] = (),
    without: Sequence[str] = (),
    optimism: Optimism | None = None,
) -> EvaluateFigures:
    """Compare the challenger with every other model on the same rows, and decide.

    Args:
        holdout: What all models were asked.
        predictions: By model; `challenger` must be there, `champion` may, the rest are baselines.
        settings: Of the decision.
        noise: Of retraining, in the main metric.
        smoke: What the package did in another process; None: it was not tried, which holds back.
        question: How often these rows were asked; it sets the confidence. None: the first time.
        first_gates: Gates that were decided before (a champion that could not be scored).
        without: Columns that are no slices' features.
        optimism: Kept in the figures.

    Raises:
        ConfigurationError: The settings name a metric that the kind of task does not have, or a
            column that is not there.
        ValueError: A prediction is not finite: nothing may be decided on it.
    """
    refuse_unknown(holdout, settings)
    confidence = question.confidence if question else settings.confidence
    models = Models(holdout, predictions, resamples=settings.resamples)
    added = Noise(noise.deviation, noise.freedom)
    others = [name for name in predictions if name != CHALLENGER]
    comparisons = {
        name: models.compare(name, metric=settings.metric, confidence=confidence, noise=added)
        for name in others
    }
    slices = slice_figures(
        models, find_slices(models, settings, without=list(without)), settings,
        confidence=confidence, noise=added,
    )  # fmt: skip
    metrics = models.metrics
    calibrated = (
        models.interval(CHALLENGER, "calibration_error", confidence=confidence)
        if "calibration_error" in metrics[CHALLENGER]
        else None
    )
    gates = [*floor_gates(metrics[CHALLENGER], settings, kind=holdout.kind), *first_gates]
    gates += [baseline_gate(comparisons[n], settings, confidence) for n in settings.must_beat]
    if CHAMPION in comparisons:
        gates.append(champion_gate(comparisons[CHAMPION], settings, confidence))
    judged = [slice_gate(slices, settings), calibration_gate(calibrated, settings)]
    gates += [gate for gate in judged if gate is not None]
    gates += package_gates(smoke, settings)
    verdict, reasons = decide(gates)
    shown = [name for name in (CHALLENGER, CHAMPION) if name in predictions]
    bins = {name: found for name in shown if (found := reliability(models, name))}
    curve = (
        roc(holdout.truth, predictions[CHALLENGER]) if holdout.kind == "binary" else ([], [], [])
    )
    return EvaluateFigures(
        verdict=verdict,
        reasons=reasons,
        metric=settings.metric,
        rows=len(holdout.truth),
        clusters=len(pd.unique(pd.Series(np.asarray(holdout.clusters)))),
        compared_entry=0,
        champion="",
        metrics=metrics,
        comparisons=list(comparisons.values()),
        gates=gates,
        reliability=bins,
        calibration_error={name: metrics[name]["calibration_error"] for name in bins},
        roc=list(zip(curve[0], curve[1], strict=True)),
        confusion=confusion(models, CHALLENGER),
        predictions="",
        kind=holdout.kind,
        classes=holdout.classes,
        confidence=confidence,
        intervals=models.intervals(confidence=confidence),
        directions={name: direction(name) for name in METRICS[holdout.kind]},
        slices=slices,
        noise=noise,
        question=question,
        smoke=smoke,
        optimism=optimism,
    )


def refuse_unknown(holdout: Holdout, settings: DecisionSettings) -> None:
    """Refuse settings that name a metric or a column that is not there.

    Raises:
        ConfigurationError: Names the first.
    """
    known = METRICS[holdout.kind]
    for name in [settings.metric, *settings.floors]:
        if name not in known:
            raise ConfigurationError(
                f"evertrain.yaml names the metric {name!r} in decision, and a {holdout.kind} task "
                "has none",
                hint=f"its metrics are: {', '.join(known)}",
            )
    for column in settings.slices:
        if column not in holdout.rows:
            raise ConfigurationError(
                f"decision.slices names the column {column!r}, which the data lacks",
                hint=f"its columns are: {', '.join(map(str, holdout.rows.columns)) or 'none'}",
            )
