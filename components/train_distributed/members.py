"""Trainings of a run beside its own, that differ from it by their seeds alone.

Each has a key of its own, made of the run's and of its seed: checkpoints, a result and a run in
MLflow. So a run that was killed finds those that had come to their end, and goes on with the next.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import copy
from typing import Any

from components.common.figures import MemberTraining
from components.common.layout import checkpoint_prefix, digest_of
from components.common.project import open_project
from components.common.records import StepContext

_SEEDS = 2**32

Train = Callable[[StepContext, dict[str, Any]], tuple[dict[str, Any], bool]]


def train_members(
    context: StepContext, job: dict[str, Any], *, train: Train
) -> tuple[list[MemberTraining], list[dict[str, Any]]]:
    """Train what `ensemble.of: seeds` asks for beside the run's own training.

    Args:
        context: Of the step.
        job: Of the run's own training.
        train: Trains as a job says, unless that was done before; returns the result, and whether it
            was.

    Returns:
        What became of each; where each one's checkpoints are.
    """
    ensemble, first = context.project.settings.ensemble, context.project.settings.training.seed
    told: list[MemberTraining] = []
    places: list[dict[str, Any]] = []
    for number in range(1, ensemble.members):
        seed = (first + number) % _SEEDS
        print(f"training {number + 1} of {ensemble.members}, seed {seed}", file=sys.stderr)
        key = member_key(job["run_key"], seed)
        overrides = [*job["overrides"], f"training.seed={seed}"]
        own = copy(context)  # with the same store, lease and record
        own.project = open_project(job["project"], overrides=overrides)
        result, found = train(own, {**job, "run_key": key, "overrides": overrides})
        told.append(told_of(result, seed=seed, found=found))
        places.append(
            {
                "prefix": checkpoint_prefix(key),
                "base": result.get("base", ""),
                "seed": seed,
                "seconds": told[-1].seconds,
            }
        )
    return told, places


def member_key(run_key: str, seed: int) -> str:
    """Return the key of a run's training with another seed."""
    return digest_of([run_key, "seed", seed])[:32]


def told_of(result: dict[str, Any], *, seed: int, found: bool) -> MemberTraining:
    """Return what a training gave, in short."""
    outcome = result["outcome"]
    last = outcome["evaluations"][-1][1] if outcome["evaluations"] else {}
    return MemberTraining(
        seed=seed,
        steps=outcome["steps"],
        seconds=seconds_of(outcome),
        found_finished=found,
        stop_reason=outcome["stop_reason"],
        loss=last.get("loss"),
    )


def seconds_of(outcome: dict[str, Any]) -> float | None:
    """Return how long a training took, by its rate of samples: pauses between attempts left out."""
    rate = outcome["samples_per_second"]
    return outcome["samples"] / rate if rate else None
