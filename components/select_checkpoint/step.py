"""Score every kept checkpoint on the whole validation split; choose one and package it.

Where `ensemble` asks for it, that is one member, and packaged is the mean of all.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from components.common.artifacts import MetricsArtifact, log_metrics, read_json, write_json
from components.common.records import step

if TYPE_CHECKING:
    from components.select_checkpoint.selection import Selection


def run(
    project: str,
    store: str,
    overrides: list[str],
    run_key: str,
    splits: str,
    training: str,
    model: str,
    candidates: str,
    metrics: MetricsArtifact,
) -> None:
    """See `component.py`."""
    with step(
        "select_checkpoint", project=project, store=store, overrides=overrides, run_key=run_key
    ) as context:
        from components.select_checkpoint.packaging import Packaging

        parts, trained = read_json(splits), read_json(training)
        packaging = Packaging(context, parts, trained)
        if context.project.settings.ensemble.of == "none":
            chosen = packaging.package(trained, Path(model)).chosen
        else:
            from components.select_checkpoint.ensemble import package_ensemble

            chosen = package_ensemble(context, packaging, parts, trained, Path(model))
        write_json(candidates, chosen.figures.model_dump(mode="json"))
        context.say(chosen.figures)
        log_metrics(metrics, logged(chosen))


def logged(chosen: Selection) -> dict[str, float]:
    """Return the chosen one's scores, and what else is worth a chart over runs."""
    optimism, ensemble = chosen.figures.optimism, chosen.figures.ensemble
    return {
        "step": chosen.place.step,
        **chosen.candidate.metrics,
        "averaged": len(chosen.candidate.members),
        "as_good": sum(candidate.as_good for candidate in chosen.figures.candidates),
        **({"expected_optimism": optimism.expected} if optimism else {}),
        **({"ensemble": ensemble.value, "members": len(ensemble.members)} if ensemble else {}),
    }
