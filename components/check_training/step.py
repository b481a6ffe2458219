"""Run the sanity checks on a sample of the train split."""

from __future__ import annotations

from components.common.artifacts import MetricsArtifact, log_metrics, read_json
from components.common.figures import Check, CheckFigures
from components.common.records import step
from components.common.rows import read_part
from training_core.errors import StoppedByGate

_POINTS = 120  # of a curve that are kept


def run(
    project: str,
    store: str,
    overrides: list[str],
    run_key: str,
    splits: str,
    metrics: MetricsArtifact,
) -> None:
    """See `component.py`."""
    with step(
        "check_training", project=project, store=store, overrides=overrides, run_key=run_key
    ) as context:
        from training_core.examples import Examples
        from training_core.sanity import (
            learns_from_inputs,
            loss_at_initialisation,
            overfit_one_batch,
        )

        settings = context.project.settings
        task = context.project.task()
        rows = read_part(context, read_json(splits), "train")
        sample = rows.sample(min(len(rows), settings.checks.rows), random_state=0)
        preprocessor = task.preprocessor().fit(sample)
        examples = Examples.from_frame(task, preprocessor, sample)

        def build():  # type: ignore[no-untyped-def]
            return task.build_model(preprocessor)

        findings = [
            loss_at_initialisation(task, build, examples, settings.checks),
            overfit_one_batch(task, build, examples, settings.checks, settings.training),
            learns_from_inputs(task, build, examples, settings.checks, settings.training),
        ]
        curves = {name: curve for f in findings for name, curve in f.curves.items()}
        context.say(
            CheckFigures(
                checks=[
                    Check(
                        name=f.name,
                        verdict=f.verdict,
                        measured=f.measured,
                        limit=f.limit,
                        message=f.message,
                    )
                    for f in findings
                ],
                curves={n: c[:: max(1, len(c) // _POINTS)] for n, c in curves.items()},
            )
        )
        log_metrics(metrics, {f.name: f.measured for f in findings if f.measured is not None})
        failed = [f for f in findings if f.verdict == "fail"]
        if failed:
            raise StoppedByGate(
                f"the training code is broken ({failed[0].name}): {failed[0].message}",
                hint="mend the task or the data before training; nothing was trained",
            )
