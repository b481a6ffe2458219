"""The certificate of a refit: which package it is a refit of, and what it was held against."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from components.common.predictions import as_columns
from components.common.refit_figures import RefitFigures
from components.common.rows import read_part, write_frame
from components.common.smoke import smoke_test
from components.refit_model.comparing import metrics_of, refit_gates, shift_figures
from training_core.errors import StoppedByGate
from training_core.package import Package

if TYPE_CHECKING:
    from components.common.decision_figures import EvaluateFigures
    from components.common.records import StepContext
    from components.refit_model.training import Refitted
    from training_core.task import Task

_REHEARSED = 256  # holdout rows that are kept with the package, as evaluate_model does


def certificate(
    context: StepContext,
    task: Task,
    evaluated: EvaluateFigures,
    splits: dict[str, Any],
    before: Package,
    folder: Path,
    refitted: Refitted,
) -> RefitFigures:
    """Hold the refitted package against the judged one, on the holdout's rows.

    Args:
        context, task, splits: Of the step.
        evaluated: evaluate_model's figures.
        before: The judged package.
        folder, refitted: The new one.

    Raises:
        StoppedByGate: It gives predictions that are not finite.
    """
    settings = context.project.settings
    rows = read_part(context, splits, "holdout")
    truth = task.target(rows)
    after = Package(folder, type(task.preprocessor()))
    predictions = {"judged": before.predict(rows), "refitted": after.predict(rows)}
    own = predictions["refitted"]
    if not np.isfinite(own).all():
        raise StoppedByGate("the refitted model gives predictions that are not finite")
    raw = rows[after.columns].head(_REHEARSED)
    smoke = smoke_test(folder, raw, own[: len(raw)])
    shift = shift_figures(
        predictions["judged"], own, truth, rows, kind=task.kind,
        slices=settings.decision.slices, noise=evaluated.noise,
    )  # fmt: skip
    metrics = metrics_of(task.kind, truth, predictions)
    gates = refit_gates(
        evaluated, shift, smoke, metrics, decision=settings.decision, settings=settings.refit
    )
    failed = next((gate for gate in gates if gate.outcome != "pass"), None)
    rehearsed = pd.concat([raw, as_columns({"prediction": own[: len(raw)]})], axis=1)
    if failed is None:
        reason = (
            f"trained again on all {sum(refitted.rows.values()):,} rows ({refitted.plan.words}); "
            f"its predictions are {shift.mean:.4f} from the judged model's, and "
            f"{settings.refit.shift:g} is allowed; nobody measured it on rows it has not seen"
        )
    else:
        reason = f"the judged model is promoted, not its refit: {failed.message}"
    return RefitFigures(
        outcome="judged" if failed else "refitted",
        reason=reason,
        judged=evaluated.package,
        refitted=refitted.files,
        rule=refitted.plan.words,
        judged_step=int(before.manifest["facts"]["step"]),
        step=refitted.plan.until,
        members=list(refitted.plan.members),
        rows=refitted.rows,
        seen=refitted.seen,
        shift=shift,
        gates=gates,
        smoke=smoke,
        metrics=metrics,
        rehearsal=write_frame(
            context.store, rehearsed, context.home / "scratch" / f"{context.record.run_key}-refit"
        ),
    )
