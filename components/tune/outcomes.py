"""How a training ended, as a trial's outcome; and which trials are best."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from components.common.tune_figures import TrialFigures
from components.common.tune_settings import TuneSettings
from components.train_distributed.failures import Failure
from components.tune.pool import Done
from training_core.errors import ConfigurationError, TrainingFailed

_POINTS = 60  # of a trial's curve that are kept


def metric_of(metrics: Mapping[str, float], settings: TuneSettings) -> float:
    """Return the metric that is searched by.

    Raises:
        ConfigurationError: There is none of that name.
    """
    if settings.metric not in metrics:
        raise ConfigurationError(
            f"tune.metric: {settings.metric!r} is no metric of the task",
            hint=f"its metrics are: {', '.join(sorted(metrics))}",
        )
    return metrics[settings.metric]


def outcome_of(done: Done, settings: TuneSettings, *, pruned: bool) -> dict[str, Any] | None:
    """Return a training's end as a trial's outcome; None: it has not come to one.

    Args:
        done: As the pool says it.
        settings: Of the search.
        pruned: Whether the trial was asked to end early.
    """
    if done.result is not None:
        outcome = done.result["outcome"]
        found = [(s, metric_of(metrics, settings)) for s, metrics in outcome["evaluations"]]
        finite = [(step, value) for step, value in found if math.isfinite(value)]
        curve = [(p["step"], _known(p["loss"])) for p in outcome["curve"]]
        facts = {
            "steps": outcome["steps"],
            "seconds": round(done.seconds, 2),
            "evaluations": finite,
            "curve": curve[:: -(-len(curve) // _POINTS) or 1],
        }
        if not finite:
            return {"ended": "diverged", "reason": "no evaluation was finite", **facts}
        worst = settings.direction == "maximise"
        step, value = min(finite, key=lambda each: -each[1] if worst else each[1])
        return {"ended": "finished", "value": value, "best_step": step, **facts}
    if done.failure is None:
        return None
    failure = Failure.from_dict(done.failure)
    seconds = round(done.seconds, 2)
    if failure.interrupted:
        return {"ended": "pruned", "seconds": seconds} if pruned else None
    kind = "diverged" if failure.kind == TrainingFailed.__name__ else "failed"
    return {"ended": kind, "reason": failure.what, "seconds": seconds}


def _known(loss: float | None) -> float | None:
    return loss if loss is not None and math.isfinite(loss) else None


def best_of(trials: list[TrialFigures], settings: TuneSettings) -> list[TrialFigures]:
    """Return the trials that are whole, the best first."""
    sign = -1 if settings.direction == "maximise" else 1
    whole = [each for each in trials if each.ended == "finished" and each.value is not None]
    return sorted(whole, key=lambda each: (sign * (each.value or 0.0), each.number))
