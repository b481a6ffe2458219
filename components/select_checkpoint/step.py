"""Score every kept checkpoint on the whole validation split; choose one and package it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from components.common.artifacts import MetricsArtifact, log_metrics, read_json, write_json
from components.common.layout import put_object
from components.common.records import step
from components.common.resampling import Draws
from components.common.rows import clusters_of, read_part
from training_core.errors import TrainingFailed

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
        from components.select_checkpoint.candidates import mean_of_best
        from components.select_checkpoint.opening import candidates_of
        from components.select_checkpoint.scoring import Judge
        from components.select_checkpoint.selection import select
        from training_core.package import write_package

        settings = context.project.settings
        task = context.project.task()
        parts, trained = read_json(splits), read_json(training)
        validation = read_part(context, parts, "validation")
        preprocessor = type(task.preprocessor()).from_state_dict(trained["preprocessor"])
        seen = trained.get("seen") or parts["seen"]
        checkpoints, found = candidates_of(
            context,
            task,
            preprocessor,
            parts,
            prefix=trained["prefix"],
            base=trained.get("base", ""),
        )
        draws = Draws.of(clusters_of(validation, settings), resamples=settings.decision.resamples)
        judge = Judge(task, preprocessor, validation, draws)
        scores = found.finite(judge.scores(found.readable()))
        if not scores:
            raise TrainingFailed(
                f"no checkpoint below {trained['prefix']} in {context.store.uri} can be used"
                + (f": {checkpoints.damaged[0]}" if checkpoints.damaged else ""),
                hint="evertrain run PROJECT --force trains afresh",
            )
        mean = mean_of_best(scores, count=settings.select.average)
        if mean is not None:
            scores += found.finite(judge.scores([(mean, found.network(mean))]))
        chosen = select(
            scores,
            draws,
            rule=settings.select.rule,
            confidence=settings.decision.confidence,
            damaged=checkpoints.damaged,
            averaged=found.averaged,
        )
        facts = {"step": chosen.place.step, "run_key": run_key, "seen": seen}
        if found.averaged:
            facts["weights"] = f"average kept by training ({settings.training.averaging.kind})"
        if chosen.place.members:
            facts["mean_of_steps"] = chosen.candidate.members
        files = write_package(
            Path(model),
            task=task,
            preprocessor=preprocessor,
            model=found.network(chosen.place),
            sample=validation.head(64),
            facts=facts,
        )
        for name, sha256 in files.items():
            stored = put_object(context.store, Path(model) / name)
            assert stored == sha256, name
        write_json(candidates, chosen.figures.model_dump(mode="json"))
        context.say(chosen.figures)
        log_metrics(metrics, logged(chosen))


def logged(chosen: Selection) -> dict[str, float]:
    """Return the chosen one's scores, and what else is worth a chart over runs."""
    optimism = chosen.figures.optimism
    return {
        "step": chosen.place.step,
        **chosen.candidate.metrics,
        "averaged": len(chosen.candidate.members),
        "as_good": sum(candidate.as_good for candidate in chosen.figures.candidates),
        **({"expected_optimism": optimism.expected} if optimism else {}),
    }
