"""Search settings before training; the steps that follow take the winner as overrides.

A step that is started again goes on with its study, and one whose search is over finds what it
found. The holdout is not looked at: evaluate_model does that, once, for the run's decision.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from components.common.artifacts import MetricsArtifact, log_metrics, read_json
from components.common.records import current_run, step
from components.common.tune_figures import TrialFigures, TuneFigures


class Outputs(NamedTuple):
    """Settings of the steps that follow."""

    overrides: list[str]


def run(
    project: str,
    store: str,
    overrides: list[str],
    run_key: str,
    splits: str,
    metrics: MetricsArtifact,
) -> Outputs:
    """See `component.py`."""
    with step(
        "tune", project=project, store=store, overrides=overrides, run_key=run_key
    ) as context:
        from components.tune.tuning import Asked, page_of, tune
        from components.tune.worth import worth

        asked = Asked(
            context.project, context.store, read_json(splits), run=current_run(), holdout=False,
            lease=context.holding.token,
        )  # fmt: skip
        figures = tune(asked, on_trial=_say_trial, say=_say)
        page_of(asked, figures)
        chosen = figures.overrides if worth(figures) else []
        context.say(figures.model_copy(update={"overrides": chosen}))
        log_metrics(metrics, logged(figures))
        return Outputs([*overrides, *chosen])


def logged(figures: TuneFigures) -> dict[str, float]:
    """Return what is worth a chart over runs."""
    found = {"trials": float(len(figures.trials)), "seconds": figures.seconds}
    if figures.comparison is not None:
        found["gained_on_validation"] = figures.comparison.validation.mean
    return found


def _say(words: str) -> None:
    print(f"tune: {words}", file=sys.stderr, flush=True)


def _say_trial(trial: TrialFigures) -> None:
    value = "" if trial.value is None else f" {trial.value:.4f}"
    _say(f"trial {trial.number} {trial.ended}{value} {trial.values}")
