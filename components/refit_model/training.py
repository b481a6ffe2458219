"""The refit itself: the judged training, with all rows, to where the plan ends; as a package."""

from __future__ import annotations

import copy
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.common.layout import checkpoint_prefix
from components.common.project import open_project
from components.common.rows import PARTS, read_part
from components.refit_model.plan import Plan, plan_of
from components.refit_model.rows import all_rows, seen_by_refit
from components.train_distributed.starting import settled_start, settled_teacher
from components.train_distributed.step import result_of
from training_core.errors import TrainingFailed

if TYPE_CHECKING:
    from components.common.records import StepContext
    from training_core.task import Task


@dataclass(frozen=True)
class Refitted:
    """A refit that was trained and packaged.

    Attributes:
        plan: By which it was trained.
        files: sha256 by file of the package.
        seen: As in a promotion entry.
        rows: By part, that it was trained on.
    """

    plan: Plan
    files: dict[str, str]
    seen: dict[str, str]
    rows: dict[str, int]


def refit(
    context: StepContext,
    task: Task,
    splits: dict[str, Any],
    trained: dict[str, Any],
    *,
    key: str,
    judged: dict[str, str],
    facts: dict[str, Any],
    folder: Path,
) -> Refitted:
    """Train on all rows as the judged model was trained on the train split; package the result.

    Args:
        context: Of the step.
        task: Of the project.
        splits, trained: What split_data and train_distributed left.
        key: Under which its checkpoints lie: what was trained under it before is gone on with.
        judged: sha256 by file of the judged package.
        facts: That package's.
        folder: For the new package.

    Raises:
        TrainingFailed, ConfigurationError, OutsideError: It cannot be trained or packaged.
        KeyboardInterrupt: It was asked to stop, and has saved.
    """
    from components.select_checkpoint.choosing import Place
    from components.select_checkpoint.packaging import SAMPLE, Packaging
    from training_core.package import write_package

    settings, run_key = context.project.settings, context.record.run_key
    scratch = context.home / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="refit-", dir=scratch) as made:
        whole = all_rows(context, splits, Path(made))
    rows = {part: int(splits["parts"][part]["rows"]) for part in PARTS}
    plan = plan_of(
        settings.training,
        judged_step=int(facts["step"]),
        judged_members=tuple(facts.get("mean_of_steps", ())),
        rows=(rows["train"], sum(rows.values())),
        rule=settings.refit.rule,
    )
    told = copy.copy(context)  # the same step, with the refit's settings
    given = [*context.project.overrides, *plan.overrides]
    told.project = open_project(context.project.folder, overrides=given)
    job = {
        "project": str(context.project.folder), "store": context.store.uri, "overrides": given,
        "run_key": key, "splits": whole, "lease": context.holding.token, "until": plan.until,
        "trial": {"name": f"{settings.name} {run_key[:8]} refit",
                  "tags": {"evertrain.refit": run_key}},
    }  # fmt: skip
    start = settled_start(context, run_key, splits)
    if start is not None:
        job["start"] = start.model_dump(mode="json")
    teacher = settled_teacher(context, run_key, splits)
    if teacher is not None:
        job["teacher"] = teacher.model_dump(mode="json")
    result, _ = result_of(told, job)
    if result["outcome"]["steps"] != plan.until:
        raise TrainingFailed(
            f"the refit ended at step {result['outcome']['steps']} of {plan.until}: "
            f"{result['outcome']['stop_reason']}"
        )
    packaging = Packaging(told, whole, result)
    place = {"prefix": checkpoint_prefix(key), "base": result.get("base", "")}
    _, found = packaging.candidates(place)
    holdout = read_part(context, splits, "holdout")
    assert settings.data.time_column is not None  # split.by: time
    seen = seen_by_refit(trained.get("seen") or splits["seen"], holdout, settings.data.time_column)
    about = {
        **{name: facts[name] for name in ("weights",) if name in facts},
        "step": plan.until, "run_key": run_key, "seen": seen,
        "refit_of": judged["package.json"], "judged_step": facts["step"],
    }  # fmt: skip
    if plan.members:
        about["mean_of_steps"] = sorted(plan.members)
    files = write_package(
        folder, task=task, preprocessor=packaging.preprocessor,
        model=found.network(Place(plan.until, plan.members)),
        sample=holdout.head(SAMPLE), facts=about,
    )  # fmt: skip
    return Refitted(plan, files, seen, rows)
