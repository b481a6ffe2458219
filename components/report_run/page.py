"""The report: one self-contained page from the records of a run.

    page = render(run=run, records=read_records(store, run_id), replay="evertrain run …")

It reads `figures.py` and nothing else, never fails on a record that is missing or strange, and
writes no number that is not in a record.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pydantic import ValidationError

from components.common.data_figures import SnapshotFigures, SplitFigures, ValidateFigures
from components.common.figures import (
    BaselineFigures,
    CheckFigures,
    EvaluateFigures,
    Figures,
    PromoteFigures,
    SelectFigures,
    TrainFigures,
)
from components.common.records import StepRecord
from components.common.run_record import RunRecord
from components.report_run import costs, formats, pictures, words
from components.report_run.svg import tiny_bar

HERE = Path(__file__).parent
MOST_CONFIG = 30_000  # characters
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
    problems: dict[str, str] = field(default_factory=dict)


def render(*, run: RunRecord, records: dict[str, StepRecord], replay: str) -> str:
    """Return the page.

    Args:
        run: The composed run.
        records: What the steps left; steps that were not reached are absent.
        replay: The command that runs the same again.
    """
    seen = read(records)
    ended = words.outcome(run, seen.promote_model)
    evaluated = seen.evaluate_model
    page = (
        _environment()
        .get_template("template.html")
        .render(
            run=run,
            seen=seen,
            records=records,
            replay=replay,
            css=Markup((HERE / "report.css").read_text()),  # noqa: S704 (our own file)
            ended=ended,
            headline=words.headline(run, ended),
            reason=words.main_reason(run),
            next_step=words.next_step(run, ended, evaluated),
            absent={
                step.name: words.absence(
                    step.name, run, records.get(step.name), seen.problems.get(step.name, "")
                )
                for step in fields(Seen)
            },
            pictures=_pictures(seen),
            models=_models(evaluated),
            unit=pictures.cluster_unit(seen.snapshot_data),
            confidence=pictures.decision_setting(seen.snapshot_data, "confidence"),
            margin=pictures.accepted_margin(seen.snapshot_data),
            config=_config(seen.snapshot_data),
            finished=run.started + timedelta(seconds=run.seconds) if run.started else None,
            slowest=max((s.seconds for s in run.steps), default=0.0) or 1.0,
            words=words,
            costs=costs,
        )
    )
    return formats.clean(page)


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
        problems=problems,
    )


def _pictures(seen: Seen) -> dict[str, Any]:
    """Every picture by name; an empty one where there is nothing to draw."""
    drawn: dict[str, Any] = dict.fromkeys(
        ("decides", "drift", "checks", "training", "candidates", "calibration", "roc"), ""
    )
    if seen.evaluate_model:
        drawn["decides"] = pictures.decides(seen.evaluate_model, seen.snapshot_data)
        drawn["calibration"] = pictures.calibration(seen.evaluate_model)
        drawn["roc"] = pictures.curve(seen.evaluate_model)
    if seen.validate_data and seen.validate_data.drift:
        drawn["drift"] = pictures.drift(seen.validate_data)
    if seen.check_training:
        drawn["checks"] = pictures.check_curves(seen.check_training)
    if seen.train_distributed:
        drawn["training"] = pictures.training(seen.train_distributed, seen.select_checkpoint)
    if seen.select_checkpoint and seen.select_checkpoint.candidates:
        drawn["candidates"] = pictures.candidates(seen.select_checkpoint)
    return drawn


def _models(evaluated: EvaluateFigures | None) -> list[str]:
    """Names of the metrics of any model, the deciding one first."""
    if evaluated is None:
        return []
    names = [name for metrics in evaluated.metrics.values() for name in metrics]
    return list(dict.fromkeys([n for n in names if n == evaluated.metric] + names))


def _config(snapshot: SnapshotFigures | None) -> str:
    if snapshot is None:
        return ""
    text = yaml.safe_dump(snapshot.provenance.config, sort_keys=False, allow_unicode=True)
    if len(text) > MOST_CONFIG:
        return text[:MOST_CONFIG] + "\n… (cut here; run.json and the records hold all of it)"
    return text


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in (
        "count",
        "decimals",
        "fixed",
        "instant",
        "interval",
        "number",
        "percent",
        "plain",
        "plural",
        "seconds",
        "sentence",
        "short",
        "size",
        "title",
    ):
        environment.filters[name] = getattr(formats, name)
    environment.globals["tiny_bar"] = tiny_bar
    return environment
