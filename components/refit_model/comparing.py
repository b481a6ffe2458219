"""The refitted model beside the judged one, on rows that only the judged one has not seen.

A refit cannot be measured: it has learned from all rows. What can be said is said by gates that a
sound refit passes and a broken one does not: it works as a package, keeps the floors and is not
worse than the judged model on the holdout, from which it has learned, and predicts nearly the same.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from components.common.decision_figures import EvaluateFigures, Gate, NoiseFigure, SmokeFigures
from components.common.metrics import HIGHER, Floats, Truth, measured
from components.common.refit_figures import ShiftFigures, SliceShift
from components.common.shift import churned, row_shifts
from components.evaluate_model.gates import floor_gates, package_gates
from components.evaluate_model.slices import declared

if TYPE_CHECKING:
    import pandas as pd

    from components.common.decision_settings import DecisionSettings
    from components.common.refit_settings import RefitSettings
    from training_core.task import Kind

_DEVIATIONS = 2.0  # of retraining, by which a refit may be worse on rows that it has learned


def shift_figures(
    judged: Floats,
    refitted: Floats,
    truth: Truth,
    rows: pd.DataFrame,
    *,
    kind: Kind,
    slices: list[str],
    noise: NoiseFigure | None,
) -> ShiftFigures:
    """Measure how far two models' predictions lie apart.

    Args:
        judged, refitted: Predictions of the same N rows, as the kind has them; all finite.
        truth: Of these rows.
        rows: Raw, N.
        kind: Of the task.
        slices: Columns whose values are looked at one by one.
        noise: Of retraining.
    """
    sums, units = row_shifts(judged, refitted, truth, kind=kind)
    counted = units > 0
    each = sums[counted] / units[counted]
    parts = [
        SliceShift(words=part.words, rows=len(part.rows), shift=_mean(sums, units, part.rows))
        for part in declared(rows, slices)
        if units[part.rows].sum() > 0
    ]
    return ShiftFigures(
        mean=float(sums.sum() / units.sum()) if counted.any() else math.nan,
        p95=float(np.quantile(each, 0.95)) if len(each) else math.nan,
        rows=len(rows),
        churned=churned(judged, refitted, truth, kind=kind),
        of_seeds=noise.shift if noise is not None else None,
        slices=sorted(parts, key=lambda part: -part.shift),
    )


def refit_gates(
    verdict: EvaluateFigures,
    shift: ShiftFigures,
    smoke: SmokeFigures,
    metrics: dict[str, dict[str, float]],
    *,
    decision: DecisionSettings,
    settings: RefitSettings,
) -> list[Gate]:
    """Return what the refitted package was held against; all of it must pass.

    Args:
        verdict: evaluate_model's figures.
        shift, smoke: Of the refitted package.
        metrics: Of `judged` and `refitted` on the holdout.
        decision, settings: Of the project.
    """
    gates = package_gates(smoke, decision)
    gates.append(_bounded("prediction shift", shift.mean, settings.shift))
    if shift.slices:
        largest = shift.slices[0]
        gates.append(
            _bounded(f"prediction shift where {largest.words}", largest.shift, settings.slice_shift)
        )
    gates.append(_learned(verdict, metrics))
    for floor in floor_gates(metrics["refitted"], decision, kind=verdict.kind):
        words = floor.message.replace("the challenger", "on rows it has learned the refitted model")
        gates.append(floor.model_copy(update={"message": words}))
    limit = decision.maximum_calibration_error
    if limit is not None:
        value = metrics["refitted"].get("calibration_error", math.nan)
        gates.append(_bounded("calibration error on rows it has learned", value, limit))
    return gates


def metrics_of(
    kind: Kind, truth: Truth, predictions: dict[str, Floats]
) -> dict[str, dict[str, float]]:
    """Return each model's metrics that are numbers."""
    return {
        name: {n: v for n, v in measured(kind, truth, each).items() if math.isfinite(v)}
        for name, each in predictions.items()
    }


def _learned(verdict: EvaluateFigures, metrics: dict[str, dict[str, float]]) -> Gate:
    """On rows that it has learned from it is at least as good as the model that has not."""
    metric = verdict.metric
    values = [metrics[name].get(metric, math.nan) for name in ("judged", "refitted")]
    worse = (values[0] - values[1]) * (1 if metric in HIGHER else -1)
    allowed = _DEVIATIONS * verdict.noise.deviation if verdict.noise is not None else 0.0
    good = worse <= allowed  # nothing is true of NaN
    return Gate(
        name="learned",
        outcome="pass" if good else "fail",
        observed=f"{values[1]:.4f}",
        threshold=f"no worse than {values[0]:.4f} by more than {allowed:.2g}",
        message=f"on the holdout, from which it has learned, the refitted model's {metric} is "
        f"{values[1]:.4f}, and that of the judged one, which has not, {values[0]:.4f}",
    )


def _bounded(name: str, value: float, limit: float) -> Gate:
    good = value <= limit
    return Gate(
        name=name,
        outcome="pass" if good else "fail",
        observed=f"{value:.4f}",
        threshold=f"at most {limit:g}",
        message=f"the {name} is {value:.4f}, and {limit:g} is allowed",
        value=value if math.isfinite(value) else None,
        limit=limit,
    )


def _mean(sums: Floats, units: Floats, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
    return float(sums[rows].sum() / units[rows].sum())
