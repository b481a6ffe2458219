"""All baselines, and their fitting."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from components.train_baseline.contract import Baseline, Ground, Predictions
from components.train_baseline.input_independent import InputIndependent
from components.train_baseline.linear import Linear
from components.train_baseline.prior import Prior
from components.train_baseline.rule import Rule
from components.train_baseline.table import Table
from components.train_baseline.trees import Trees

BASELINES: tuple[type[Baseline], ...] = (Prior, InputIndependent, Rule, Table, Linear, Trees)


@dataclass
class FittedBaselines:
    """What became of each baseline.

    Attributes:
        predictions: By name, of each part's rows.
        absent: By name, why it was not trained.
        seconds: By name, to fit it and to predict.
    """

    predictions: dict[str, Predictions] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


def fit_baselines(ground: Ground) -> FittedBaselines:
    """Fit every baseline that can be had; say of every other why not."""
    found = FittedBaselines()
    for baseline in (kind() for kind in BASELINES):
        began = time.monotonic()
        predictions, why = _fit(baseline, ground)
        if predictions is None:
            found.absent[baseline.name] = why
            continue
        found.predictions[baseline.name] = predictions
        found.seconds[baseline.name] = round(time.monotonic() - began, 3)
    return found


def _fit(baseline: Baseline, ground: Ground) -> tuple[Predictions | None, str]:
    if ground.task.kind not in baseline.kinds:
        return None, f"it does not learn {ground.task.kind} tasks"
    if why := baseline.why_absent(ground):
        return None, why
    return baseline.fit(ground), "it has nothing to say of these rows"
