"""Make the sanity checks on a sample of the train and the validation split."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from components.check_training.recording import figures_of
from components.common.artifacts import MetricsArtifact, log_metrics, read_json
from components.common.figures import CheckFigures
from components.common.records import step, threads_of
from components.common.rows import read_part
from training_core.errors import StoppedByGate

if TYPE_CHECKING:
    from training_core.checks.contract import Finding


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
        import torch

        from training_core.checks.lost_labels import LostLabel
        from training_core.checks.runner import run_checks
        from training_core.checks.subject import Subject

        settings, manifest = context.project.settings, read_json(splits)
        torch.set_num_threads(threads_of(settings.training))
        train, validation = (
            rows.sample(min(len(rows), settings.checks.rows), random_state=0)
            for rows in (read_part(context, manifest, part) for part in ("train", "validation"))
        )
        subject = Subject(
            context.project.task(),
            train,
            validation=validation,
            training=settings.training,
            settings=settings.checks,
            planned_rows=manifest["parts"]["train"]["rows"],
            lost_labels=[LostLabel(*each) for each in manifest.get("lost_labels", [])],
        )
        figures = figures_of(run_checks(subject, on_finding=_say))
        context.say(figures)
        measured = {c.name: c.measured for c in figures.checks if c.measured is not None}
        log_metrics(metrics, measured)
        stop_if_broken(figures)


def stop_if_broken(figures: CheckFigures) -> None:
    """Raise StoppedByGate if a check failed: it names every one that did."""
    failed = [check for check in figures.checks if check.verdict == "fail"]
    if not failed:
        return
    first, *others = failed
    also = f"; also failed: {', '.join(check.name for check in others)}" if others else ""
    advice = first.advice.rstrip().rstrip(".")
    raise StoppedByGate(
        f"the training code is broken ({first.name}): {first.message}{also}",
        hint=f"{advice}; nothing was trained" if advice else "nothing was trained",
    )


def line_of(finding: Finding) -> str:
    """A finding as one line of a log."""
    words = finding.verdict.replace("_", " ")
    said = " ".join(finding.message.split())
    return f"{finding.name:<28} {words:<14} {finding.seconds:5.1f} s  {said}"


def _say(finding: Finding) -> None:
    print(line_of(finding), file=sys.stderr, flush=True)
