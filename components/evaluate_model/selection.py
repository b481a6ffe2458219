"""How much better the chosen checkpoint looked than it is: expected, and seen on the holdout."""

from __future__ import annotations

import math

from pydantic import ValidationError

from components.common.decision_figures import Candidate, Optimism, SelectFigures
from components.common.layout import key_record
from components.common.metrics import ROW_METRICS, Floats, row_scores
from components.common.metrics.rows import units_of
from components.common.optimism import measured_optimism
from components.common.records import StepRecord
from components.common.resampling import Draws
from components.evaluate_model.comparing import Holdout
from infra.errors import ObjectMissing
from infra.store import ObjectStore

_SAME = 1e-3  # relative: the task's loss is the metric of this name


def observed_optimism(
    store: ObjectStore,
    run_key: str,
    holdout: Holdout,
    predictions: Floats,
    *,
    resamples: int,
    confidence: float,
) -> Optimism | None:
    """Return the optimism of this run's choice with what the holdout shows of it.

    Checkpoints are chosen by the task's own loss, and a package gives predictions: they can be held
    against each other where that loss is the kind's first metric, as it is unless a task changes
    it. None: it is not; what was chosen is only one member of an ensemble; or select_checkpoint
    left no figures that can be read.
    """
    try:
        record = StepRecord.model_validate_json(store.get(key_record(run_key, "select_checkpoint")))
        selected = SelectFigures.model_validate(record.figures)
    except (ObjectMissing, ValidationError):
        return None
    chosen, metric = _chosen(selected), ROW_METRICS[holdout.kind][0]
    if chosen is None or selected.optimism is None or selected.ensemble is not None:
        return None
    loss = chosen.metrics.get("loss", math.nan)
    if not math.isclose(loss, chosen.metrics.get(metric, math.nan), rel_tol=_SAME):
        return None
    return measured_optimism(
        selected.optimism,
        validation_loss=loss,
        holdout_losses=row_scores(holdout.truth, predictions, kind=holdout.kind)[metric],
        holdout_units=units_of(holdout.truth, holdout.kind),
        draws=Draws.of(holdout.clusters, resamples=resamples),
        confidence=confidence,
    )


def _chosen(selected: SelectFigures) -> Candidate | None:
    return next(
        (
            each
            for each in selected.candidates
            if (each.step, each.members) == (selected.chosen, selected.chosen_members)
        ),
        None,
    )
