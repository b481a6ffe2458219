"""What a run's steps left, read and checked: figures, or why there are none."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TypeVar

from pydantic import ValidationError

from components.common.data_figures import SnapshotFigures, SplitFigures, ValidateFigures
from components.common.decision_figures import EvaluateFigures, PromoteFigures, SelectFigures
from components.common.figures import BaselineFigures, CheckFigures, Figures, TrainFigures
from components.common.records import StepRecord
from components.common.refit_figures import RefitFigures
from components.common.run_record import RunRecord
from components.common.tune_figures import TuneFigures
from components.report_run import words

F = TypeVar("F", bound=Figures)


@dataclass
class Seen:
    """The figures of every step that left some, and why the others left none."""

    snapshot_data: SnapshotFigures | None
    validate_data: ValidateFigures | None
    split_data: SplitFigures | None
    check_training: CheckFigures | None
    train_baseline: BaselineFigures | None
    train_distributed: TrainFigures | None
    select_checkpoint: SelectFigures | None
    evaluate_model: EvaluateFigures | None
    promote_model: PromoteFigures | None
    tune: TuneFigures | None = None
    refit_model: RefitFigures | None = None
    problems: dict[str, str] = field(default_factory=dict)


def read(records: dict[str, StepRecord]) -> Seen:
    """Validate the figures of every record; what is not valid is said, never guessed."""
    problems: dict[str, str] = {}

    def one(step: str, kind: type[F]) -> F | None:
        record = records.get(step)
        if record is None or not record.figures:
            return None
        try:
            return kind.model_validate(record.figures)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            problems[step] = f"{where}: {first['msg']}"
            return None

    return Seen(
        snapshot_data=one("snapshot_data", SnapshotFigures),
        validate_data=one("validate_data", ValidateFigures),
        split_data=one("split_data", SplitFigures),
        check_training=one("check_training", CheckFigures),
        train_baseline=one("train_baseline", BaselineFigures),
        train_distributed=one("train_distributed", TrainFigures),
        select_checkpoint=one("select_checkpoint", SelectFigures),
        evaluate_model=one("evaluate_model", EvaluateFigures),
        promote_model=one("promote_model", PromoteFigures),
        tune=one("tune", TuneFigures),
        refit_model=one("refit_model", RefitFigures),
        problems=problems,
    )


def absences(seen: Seen, run: RunRecord, records: dict[str, StepRecord]) -> dict[str, str]:
    """For every step, the sentence that stands where its figures would be."""
    return {
        step.name: words.absence(
            step.name, run, records.get(step.name), seen.problems.get(step.name, "")
        )
        for step in fields(Seen)
    }
