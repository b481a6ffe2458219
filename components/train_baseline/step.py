"""Fit each baseline on the train split; score validation, and the holdout row by row."""

from __future__ import annotations

from components.common.artifacts import MetricsArtifact, log_metrics, read_json, write_json
from components.common.figures import BaselineFigures, HumanFigure
from components.common.metrics import ROW_METRICS, measured
from components.common.predictions import as_columns
from components.common.records import step
from components.common.rows import read_part, write_frame
from components.common.settings import ProjectSettings
from training_core.errors import ConfigurationError


def run(
    project: str,
    store: str,
    overrides: list[str],
    run_key: str,
    splits: str,
    baselines: str,
    metrics: MetricsArtifact,
) -> None:
    """See `component.py`."""
    with step(
        "train_baseline", project=project, store=store, overrides=overrides, run_key=run_key
    ) as context:
        from components.train_baseline.catalogue import fit_baselines
        from components.train_baseline.contract import Ground

        settings, task = context.project.settings, context.project.task()
        manifest = read_json(splits)
        scored = {part: read_part(context, manifest, part) for part in ("validation", "holdout")}
        ground = Ground(
            task,
            read_part(context, manifest, "train"),
            scored,
            settings=settings.baselines,
            training=settings.training,
        )
        fitted = fit_baselines(ground)
        refuse_absent(fitted.absent, settings)
        truth, metric = task.target(scored["validation"]), ROW_METRICS[task.kind][0]
        validation = {
            name: measured(task.kind, truth, parts["validation"])
            for name, parts in fitted.predictions.items()
        }
        holdout = {name: parts["holdout"] for name, parts in fitted.predictions.items()}
        scratch = context.home / "scratch" / f"{run_key}-baselines"
        write_json(
            baselines,
            {
                "format": "evertrain/baselines/1",
                "holdout_predictions": write_frame(context.store, as_columns(holdout), scratch),
            },
        )
        human = settings.baselines.human
        context.say(
            BaselineFigures(
                validation=validation,
                seconds=fitted.seconds,
                absent=fitted.absent,
                human=None if human is None else HumanFigure(**human.model_dump()),
            )
        )
        log_metrics(
            metrics, {f"{name}_{metric}": values[metric] for name, values in validation.items()}
        )


def refuse_absent(absent: dict[str, str], settings: ProjectSettings) -> None:
    """Refuse to go on where a baseline that must be beaten could not be had.

    Raises:
        ConfigurationError: Names the first, and why it is absent.
    """
    for name in settings.decision.must_beat:
        if name in absent:
            raise ConfigurationError(
                f"decision.must_beat names {name!r}, which was not trained: {absent[name]}",
                hint=f"mend that, or take {name!r} from decision.must_beat",
            )
