"""Every model on the same holdout: its metrics, exactly and in each draw, paired with others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from components.common.decision_figures import Comparison
from components.common.metrics import (
    HIGHER,
    Family,
    Floats,
    Truth,
    drawn,
    exact,
    families_of,
)
from components.common.resampling import Draws, Interval, Noise

if TYPE_CHECKING:
    from training_core.task import Kind

CHALLENGER, CHAMPION = "challenger", "champion"


@dataclass(frozen=True)
class Holdout:
    """What all models are asked about.

    Attributes:
        kind: Of the task.
        truth: As `training_core/task.py` has it for the kind, first dimension N.
        clusters: The cluster of each row; any hashable values, length N.
        rows: The raw rows that slices are made of, N; none where there are no slices.
        classes: Names of the classes, where there are some.
    """

    kind: Kind
    truth: Truth
    clusters: Any
    rows: pd.DataFrame = field(default_factory=pd.DataFrame)
    classes: list[str] = field(default_factory=list)


class Models:
    """The predictions of challenger, champion and baselines.

    Args:
        holdout: What they are of.
        predictions: By model, each float64 and shaped as the kind has it.
        resamples: Bootstrap draws.

    Raises:
        ValueError: A prediction is not finite: nothing may be decided on it.
    """

    def __init__(
        self, holdout: Holdout, predictions: Mapping[str, Floats], *, resamples: int
    ) -> None:
        self.holdout = holdout
        self.predictions = predictions
        self.draws = Draws.of(holdout.clusters, resamples=resamples)
        self.families: dict[str, list[Family]] = {
            name: families_of(holdout.kind, holdout.truth, predicted)
            for name, predicted in predictions.items()
        }
        self.points = {name: exact(families) for name, families in self.families.items()}

    @cached_property
    def drawn(self) -> dict[str, dict[str, Floats]]:
        """Every metric of every model in each draw, float64 [resamples]."""
        return {
            name: drawn(families, self.draws, points=self.points[name])
            for name, families in self.families.items()
        }

    @property
    def metrics(self) -> dict[str, dict[str, float]]:
        """Model to metric to value; what cannot be computed is left out."""
        return {
            model: {name: value for name, value in points.items() if np.isfinite(value)}
            for model, points in self.points.items()
        }

    def family(self, model: str, metric: str) -> Family:
        """Return the family of a model's metrics that one of them is of."""
        return next(f for f in self.families[model] if metric in f.exact(np.arange(0)))

    def interval(self, model: str, metric: str, *, confidence: float) -> Interval:
        """Return where a model's metric may lie."""
        return self.draws.interval(
            self.points[model][metric], self.drawn[model][metric], confidence=confidence
        )

    def intervals(self, *, confidence: float) -> dict[str, dict[str, tuple[float, float]]]:
        """Return those of all models and metrics; what has no finite one is left out."""
        found: dict[str, dict[str, tuple[float, float]]] = {}
        for model, metrics in self.metrics.items():
            each = {m: self.interval(model, m, confidence=confidence) for m in metrics}
            known = {m: (i.low, i.high) for m, i in each.items() if np.isfinite(i.low + i.high)}
            found[model] = known
        return found

    def compare(self, against: str, *, metric: str, confidence: float, noise: Noise) -> Comparison:
        """Compare the challenger with another model on the same draws: above 0 it is better."""
        interval = self.draws.interval(
            better_by(metric, self.points[against][metric], self.points[CHALLENGER][metric]),
            better_by(metric, self.drawn[against][metric], self.drawn[CHALLENGER][metric]),
            confidence=confidence,
            noise=noise,
        )
        return Comparison(
            against=against,
            difference=interval.mean,
            low=interval.low,
            high=interval.high,
            noise=noise.deviation,
            clusters=interval.clusters,
        )


def better_by(metric: str, other: Any, challenger: Any) -> Any:
    """Return by how much the challenger is better, whichever way the metric points."""
    return challenger - other if metric in HIGHER else other - challenger
