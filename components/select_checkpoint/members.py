"""The members of the run's ensemble, what keeps others out, and the package of their mean."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from components.common.champion import PromotionLog
from components.common.champion_members import own_model, recent_champions
from components.common.champion_model import package_folder
from components.common.ensemble_figures import EnsembleFigures, EnsembleMember, ModelCost
from components.common.metrics import ROW_METRICS, Floats, measured
from components.common.rows import holdout_times
from components.common.unseen import seen_together, why_seen
from components.select_checkpoint.packaging import SAMPLE, keep_package
from infra.errors import ObjectDamaged, ObjectMissing
from training_core.ensembles import parameters_of, write_ensemble
from training_core.errors import TrainingFailed
from training_core.package import Package, answers_as

if TYPE_CHECKING:
    import pandas as pd

    from components.common.champion import PromotionEntry
    from components.common.records import StepContext
    from training_core.task import Task

_TIMED = 1000  # rows predicted at once
_TIMES, _SECONDS = 20, 0.5  # at most, of each measurement


@dataclass(frozen=True)
class Member:
    """One model of an ensemble.

    Attributes:
        what: In words.
        package: Loaded.
        files: sha256 by name, all in the object store.
        seen: What it has seen.
        predictions: Of the validation split.
        seconds: Its training took in this run; None: not known, 0: it was trained before.
    """

    what: str
    package: Package
    files: dict[str, str]
    seen: dict[str, str]
    predictions: Floats
    seconds: float | None


def champions(
    context: StepContext,
    parts: dict[str, Any],
    validation: pd.DataFrame,
    own: Member,
    *,
    task: Task,
    most: int,
) -> tuple[list[Member], list[str]]:
    """Return the last champions that can be averaged with the run's own model.

    Args:
        context: Of the step.
        parts: What split_data left.
        validation: Raw rows.
        own: The run's own model.
        task: Of the project.
        most: How many are wanted.

    Returns:
        The newest first; why others were left out, in words.

    Raises:
        OutsideError: The object store cannot be read (one that is missing there is left out).
    """
    found: list[Member] = []
    out: list[str] = []
    packages = [own.files["package.json"]]
    entries = recent_champions(PromotionLog(context.store), context.record.run_key)
    for entry in entries:
        if len(found) == most:
            break
        member = _champion(context, entry, parts, validation, own, task)
        if isinstance(member, str):
            out.append(member)
        elif member.files["package.json"] not in packages:
            packages.append(member.files["package.json"])
            found.append(member)
    if len(found) < most:
        out.append(f"champions asked for: {most}, so far there are {len(entries)}")
    return found, out


def _champion(
    context: StepContext,
    entry: PromotionEntry,
    parts: dict[str, Any],
    validation: pd.DataFrame,
    own: Member,
    task: Task,
) -> Member | str:
    """Return a champion's own model, or why it cannot be a member."""
    who = f"champion {entry.version}"
    try:
        model = own_model(context.store, entry, context.cache)
        rows, settings = holdout_times(context, parts), context.project.settings
        seen = why_seen(model.seen, rows, parts["seen"], settings, who=who)
        if seen is not None:
            return seen
        folder = package_folder(context.store, model.package, context.cache)
        package = Package(folder, type(task.preprocessor()))
        if why := answers_as(package.manifest, task):
            return f"{who}: {why}"
        predictions = package.predict(validation)
    except (TrainingFailed, KeyError, ObjectMissing, ObjectDamaged) as error:
        return f"{who} cannot be used: {error.args[0] if error.args else type(error).__name__}"
    if predictions.shape != own.predictions.shape:
        shapes = [list(each.shape[1:]) for each in (predictions, own.predictions)]
        return f"{who}: its predictions are of the shape {shapes[0]}, this run's of {shapes[1]}"
    if not np.isfinite(predictions).all():
        return f"{who} gives predictions that are not finite"
    return Member(who, package, model.package, model.seen, predictions, 0.0)


def package_mean(
    context: StepContext,
    members: Sequence[Member],
    validation: pd.DataFrame,
    *,
    task: Task,
    facts: dict[str, Any],
    folder: Path,
    left_out: list[str],
) -> EnsembleFigures:
    """Write the package of the members' mean, keep it in the store, and say what it costs.

    Args:
        context: Of the step.
        members: Two or more, the run's own model first.
        validation: Raw rows.
        task: Of the project.
        facts: Of the run's own package.
        folder: Where the package is written.
        left_out: Why there are fewer than asked, in words.
    """
    seen = members[0].seen
    for member in members[1:]:
        seen = seen_together(seen, member.seen)
    settings = context.project.settings.ensemble
    told = [{"what": m.what, "package": m.files, "seen": m.seen} for m in members]
    files = write_ensemble(
        folder,
        members=[member.package for member in members],
        task=task,
        sample=validation.head(SAMPLE),
        facts={**facts, "seen": seen, "ensemble": {"of": settings.of, "members": told}},
    )
    keep_package(context, folder, files)
    whole = Package(folder, type(task.preprocessor()))
    truth, metric = task.target(validation), ROW_METRICS[task.kind][0]

    def value(predictions: Floats) -> float:
        return measured(task.kind, truth, predictions)[metric]

    trained = [member.seconds for member in members]
    seconds = None if None in trained else sum(each or 0.0 for each in trained)
    return EnsembleFigures(
        of=settings.of,
        asked=settings.members,
        metric=metric,
        members=[
            EnsembleMember(what=m.what, value=value(m.predictions), package=m.files)
            for m in members
        ],
        value=value(whole.predict(validation)),
        left_out=left_out,
        one=cost_of(members[0].package, validation, seconds=members[0].seconds),
        all=cost_of(whole, validation, seconds=seconds),
    )


def cost_of(package: Package, rows: pd.DataFrame, *, seconds: float | None) -> ModelCost:
    """Measure what a package costs; predictions are timed in this process.

    Args:
        package: Loaded.
        rows: Raw rows to time it with.
        seconds: Its training took.
    """
    one = rows.head(1)
    many = rows.head(_TIMED)
    return ModelCost(
        parameters=parameters_of(package),
        size=sum(file.stat().st_size for file in package.folder.iterdir() if file.is_file()),
        training_seconds=seconds,
        row_ms=1000 * _median_seconds(package, one),
        rows_ms=1000 * _median_seconds(package, many) * _TIMED / max(len(many), 1),
    )


def _median_seconds(package: Package, rows: pd.DataFrame) -> float:
    package.predict(rows)  # warm
    taken: list[float] = []
    while not taken or (len(taken) < _TIMES and sum(taken) < _SECONDS):
        began = time.perf_counter()
        package.predict(rows)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)
