"""What each slice says of the challenger beside the champion, all of them at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from components.common.decision_figures import Outcome, SliceFigure
from components.common.decision_settings import DecisionSettings
from components.common.metrics import Floats, drawn, row_scores
from components.common.metrics.rows import ROW_METRICS, units_of
from components.common.resampling import Noise
from components.evaluate_model.comparing import CHALLENGER, CHAMPION, Models, better_by
from components.evaluate_model.slices import Slice, declared, searched


def find_slices(models: Models, settings: DecisionSettings, *, without: list[str]) -> list[Slice]:
    """Return the slices that the settings name and those that a search finds.

    Raises:
        KeyError: A named column is not there; its argument is the name.
    """
    rows = models.holdout.rows
    found = declared(rows, settings.slices)
    if settings.search_slices and len(rows.columns):
        worse = _worse(models, settings.metric)
        found += searched(rows, worse, models.draws.codes, without=without)
    return found


def slice_figures(
    models: Models,
    slices: Sequence[Slice],
    settings: DecisionSettings,
    *,
    confidence: float,
    noise: Noise,
) -> list[SliceFigure]:
    """Judge all slices at once: the intervals hold for all of them together.

    Against a champion, retraining noise is added to each draw, the same to every slice. Slices of
    few rows have more of it, so a slice may be called worse that only had an unlucky seed; that
    holds a model back, and never promotes one.
    """
    metric, draws = settings.metric, models.draws
    if not slices:
        return []
    values = {
        name: [models.family(name, metric).exact(part.rows)[metric] for part in slices]
        for name in (CHALLENGER, CHAMPION)
        if name in models.families
    }
    sizes = [np.bincount(draws.codes[part.rows], minlength=draws.count) for part in slices]
    effective = [draws.effective_of(size) for size in sizes]
    bounds: list[tuple[float, float]] = [(-np.inf, np.inf)] * len(slices)
    differences: Floats = np.full(len(slices), np.nan)
    if CHAMPION in values:
        added = noise.drawn(draws.resamples) if noise.deviation else 0.0
        both = [
            {n: drawn([models.family(n, metric)], draws, part.rows)[metric] for n in values}
            for part in slices
        ]
        moved = [better_by(metric, b[CHAMPION], b[CHALLENGER]) + added for b in both]
        differences = better_by(metric, np.array(values[CHAMPION]), np.array(values[CHALLENGER]))
        bounds = draws.together(
            differences, np.stack(moved, axis=1), confidence=confidence, effective=effective
        )
    found = []
    for i, part in enumerate(slices):
        champion = values[CHAMPION][i] if CHAMPION in values else None
        margin = settings.slice_margin * abs(_number(champion) or 0.0)
        low, high = bounds[i]
        found.append(
            SliceFigure(
                words=part.words,
                source=part.source,
                rows=len(part.rows),
                clusters=int((sizes[i] > 0).sum()),
                challenger=_number(values[CHALLENGER][i]),
                champion=_number(champion),
                difference=_number(differences[i]),
                low=_number(low),
                high=_number(high),
                margin=margin,
                outcome=_outcome(low, high, margin) if CHAMPION in values else "skipped",
            )
        )
    return sorted(found, key=lambda each: (each.low is None, each.low or 0.0))


def _worse(models: Models, metric: str) -> Floats:
    """By how much each row is worse than the champion's, or than nothing, where there is none."""
    kind, truth = models.holdout.kind, models.holdout.truth
    name = metric if metric in ROW_METRICS[kind] else ROW_METRICS[kind][0]
    units = np.maximum(units_of(truth, kind), 1.0)
    each = {
        model: row_scores(truth, models.predictions[model], kind=kind)[name] / units
        for model in (CHALLENGER, CHAMPION)
        if model in models.predictions
    }
    return each[CHALLENGER] - each.get(CHAMPION, np.zeros(len(truth)))


def _outcome(low: float, high: float, margin: float) -> Outcome:
    if high < -margin:
        return "fail"
    return "pass" if low > -margin else "unsure"


def _number(value: float | None) -> float | None:
    return float(value) if value is not None and np.isfinite(value) else None
