"""Make the sanity checks on a sample of the train and the validation split."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from components.common.artifacts import MetricsArtifact, log_metrics, read_json
from components.common.figures import Check, CheckFigures
from components.common.records import step, threads_of
from components.common.rows import read_part
from training_core.errors import StoppedByGate

if TYPE_CHECKING:
    from training_core.checks.contract import Curve, Finding

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
        import torch

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
        )
        findings = run_checks(subject)
        context.say(figures_of(findings))
        log_metrics(metrics, {f.name: f.measured for f in findings if f.measured is not None})
        stop_if_broken(findings)


def figures_of(findings: list[Finding]) -> CheckFigures:
    """Return what is recorded: curves thinned, figures that are not finite left out."""
    return CheckFigures(
        checks=[Check.model_validate(_recorded(finding)) for finding in findings],
        seconds=sum(finding.seconds for finding in findings),
    )


def stop_if_broken(findings: list[Finding]) -> None:
    """Raise StoppedByGate if a check failed: it names every one that did."""
    failed = [finding for finding in findings if finding.verdict == "fail"]
    if not failed:
        return
    first, *others = failed
    also = f"; also failed: {', '.join(f.name for f in others)}" if others else ""
    raise StoppedByGate(
        f"the training code is broken ({first.name}): {first.message}{also}",
        hint=f"{first.advice}; nothing was trained",
    )


def _recorded(finding: Finding) -> dict[str, Any]:
    said = dataclasses.asdict(finding)
    said["curves"] = {name: _thinned(curve) for name, curve in finding.curves.items()}
    for name in ("measured", "limit"):
        if said[name] is not None and not math.isfinite(said[name]):
            said[name] = None
    return said


def _thinned(curve: Curve) -> Curve:
    finite = [(step, value) for step, value in curve if math.isfinite(value)]
    every = max(1, len(finite) // _POINTS)
    return finite[::every]
