"""Start training in this process, under torchrun or on several nodes; record how it went."""

from __future__ import annotations

import os
from typing import Any

from components.common.artifacts import MetricsArtifact, log_metrics, read_json, write_json
from components.common.figures import EvaluationPoint, MemberTraining, TrainFigures, TrainPoint
from components.common.layout import checkpoint_prefix
from components.common.records import StepContext, step, threads_of
from components.common.training_start import TrainingStart
from components.common.unseen import seen_together
from components.train_distributed.job import train
from components.train_distributed.members import seconds_of, train_members
from components.train_distributed.nodes import train_on_nodes
from components.train_distributed.results import drop_result, kept_result, made_of
from components.train_distributed.starting import settled_start, settled_teacher
from components.train_distributed.torchrun import start_torchrun


def run(
    project: str,
    store: str,
    overrides: list[str],
    run_key: str,
    splits: str,
    training: str,
    metrics: MetricsArtifact,
) -> None:
    """See `component.py`."""
    with step(
        "train_distributed", project=project, store=store, overrides=overrides, run_key=run_key
    ) as context:
        job = {
            "project": project,
            "store": store,
            "overrides": overrides,
            "run_key": run_key,
            "splits": read_json(splits),
            "lease": context.holding.token,
        }
        start = settled_start(context, run_key, job["splits"])
        if start is not None:
            job["start"] = start.model_dump(mode="json")
        teacher = settled_teacher(context, run_key, job["splits"])
        if teacher is not None:
            job["teacher"] = teacher.model_dump(mode="json")
        result, kept = result_of(context, job)
        members: list[MemberTraining] = []
        places: list[dict[str, Any]] = []
        if context.project.settings.ensemble.of == "seeds":
            members, places = train_members(context, job, train=result_of)
        outcome = result["outcome"]
        context.say(
            TrainFigures(
                parameters=result["parameters"],
                steps=outcome["steps"],
                samples=outcome["samples"],
                epochs=outcome["samples"] / job["splits"]["parts"]["train"]["rows"],
                processes=result["processes"],
                nodes=context.project.settings.training.nodes,
                found_finished=kept,
                start=result.get("start", ""),
                teacher=result.get("teacher", ""),
                members=members,
                device=result["device"],
                precision=result["precision"],
                resumed_from=outcome["resumed_from"],
                skipped_steps=outcome["skipped_steps"],
                stop_reason=outcome["stop_reason"],
                samples_per_second=outcome["samples_per_second"],
                rollbacks=outcome["rollbacks"],
                curve=[TrainPoint(**point) for point in outcome["curve"]],
                evaluations=[
                    EvaluationPoint(step=number, metrics=values)
                    for number, values in outcome["evaluations"]
                ],
                checkpoints=result["checkpoints"],
                damaged=result["damaged"],
            )
        )
        write_json(
            training,
            {
                "format": "evertrain/training/1",
                "prefix": checkpoint_prefix(run_key),
                "preprocessor": result["preprocessor"],
                "base": result.get("base", ""),
                "seconds": seconds_of(outcome),
                "members": places,
                "seen": _seen(job["splits"]["seen"], start, teacher),
            },
        )
        last = outcome["evaluations"][-1][1] if outcome["evaluations"] else {}
        log_metrics(
            metrics,
            {f"validation_{name}": value for name, value in last.items()}
            | {"steps": outcome["steps"], "samples_per_second": outcome["samples_per_second"]},
        )


def _seen(seen_now: dict[str, str], *others: TrainingStart | None) -> dict[str, str]:
    """What the trained network has seen: by itself, in what it began with, through its teacher."""
    for other in others:
        if other is not None and other.seen:
            seen_now = seen_together(seen_now, other.seen)
    return seen_now


def result_of(context: StepContext, job: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Train, unless that has come to its end before; return what came of it, and whether it had.

    Args:
        context: Of the step; its project has the settings of this training.
        job: Arguments of `job.train`.

    Raises:
        TrainingFailed, OutsideError, KeyboardInterrupt: As `_train`.
    """
    wanted = made_of(context.project, job["splits"])
    kept = kept_result(context.store, job["run_key"], made_of=wanted)
    return (_train(context, job), False) if kept is None else (kept, True)


def _train(context: StepContext, job: dict[str, Any]) -> dict[str, Any]:
    """Train where the settings say, and return what came of it.

    Raises:
        TrainingFailed, OutsideError: As the first failing rank said.
        KeyboardInterrupt: It was asked to stop, and has saved.
    """
    training = context.project.settings.training
    if training.nodes > 1:
        return train_on_nodes(context, job)
    drop_result(context.store, job["run_key"])
    if training.processes == 1:
        return train(**job)
    ended = start_torchrun(
        job,
        processes=training.processes,
        folder=context.home / "scratch",
        env={**os.environ, "OMP_NUM_THREADS": str(threads_of(training))},
    )
    if ended.result is not None:
        return ended.result
    raise ended.exception()
