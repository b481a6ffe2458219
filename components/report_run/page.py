"""The report: one self-contained page from the records of a run.

    page = render(run=run, records=read_records(store, run_id), replay="evertrain run …")

It reads `figures.py` and `data_figures.py` and nothing else, never fails on a record that is
missing or strange, and writes no number that is not in a record.
"""

from __future__ import annotations

from typing import Any

import yaml

from components.common import refit_words
from components.common.data_figures import SnapshotFigures
from components.common.decision_figures import EvaluateFigures
from components.common.records import StepRecord
from components.common.run_record import RunRecord
from components.report_run import (
    check_words,
    costs,
    decision_pictures,
    decision_words,
    ensemble_words,
    pictures,
    words,
)
from components.report_run.check_section import IN_THE_REPORT, check_groups
from components.report_run.data_section import data_section
from components.report_run.gate_pictures import gates_picture
from components.report_run.seen import Seen, read
from components.report_run.templates import fitted

MOST_CONFIG = 30_000  # characters


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
    proposed = seen.promote_model.version if seen.promote_model else ""
    whole = {
        "replay": replay,
        "ended": ended,
        "headline": words.headline(run, ended, proposed),
        "reason": words.main_reason(run),
        "next_step": words.next_step(run, ended, evaluated),
        "pictures": _pictures(seen),
        "models": _models(evaluated),
        "unit": pictures.cluster_unit(seen.snapshot_data),
        "confidence": pictures.confidence(evaluated, seen.snapshot_data),
        "noise_shown": retraining_noise(seen),
        "said_of": decision_words,
        "refit_words": refit_words,
        "shapes_of": decision_pictures,
        "margin": pictures.accepted_margin(seen.snapshot_data),
        "config": _config(seen.snapshot_data),
        "finished": words.finished(run),
        "slowest": max((s.seconds for s in run.steps), default=0.0) or 1.0,
        "words": words,
        "costs": costs,
        "ensemble_words": ensemble_words,
        "check_words": check_words,
        "check_groups": check_groups(seen.check_training, share=IN_THE_REPORT),
    }
    return fitted("template.html", whole | data_section(run, records, seen))


def _pictures(seen: Seen) -> dict[str, Any]:
    """Every picture by name; an empty one where there is nothing to draw."""
    drawn: dict[str, Any] = dict.fromkeys(
        (
            "decides",
            "gates",
            "checks",
            "training",
            "candidates",
            "calibration",
            "roc",
            "slices",
            "confusion",
        ),
        "",
    )
    if seen.evaluate_model:
        drawn["decides"] = pictures.decides(seen.evaluate_model, seen.snapshot_data)
        drawn["calibration"] = pictures.calibration(seen.evaluate_model)
        drawn["gates"] = gates_picture(seen.evaluate_model, noise=retraining_noise(seen))
        drawn["slices"] = decision_pictures.slices(seen.evaluate_model)
        drawn["confusion"] = decision_pictures.confusion(seen.evaluate_model)
        drawn["roc"] = pictures.curve(seen.evaluate_model)
    if seen.check_training:
        drawn["checks"] = pictures.check_curves(seen.check_training)
    if seen.train_distributed:
        drawn["training"] = pictures.training(seen.train_distributed, seen.select_checkpoint)
    if seen.select_checkpoint and seen.select_checkpoint.candidates:
        drawn["candidates"] = decision_pictures.candidates(seen.select_checkpoint)
    return drawn


def retraining_noise(seen: Seen) -> float:
    """What is drawn around zero beside the champion."""
    evaluated = seen.evaluate_model
    if evaluated is None:
        return 0.0
    if evaluated.noise is not None:
        return evaluated.noise.deviation
    return next((c.noise for c in evaluated.comparisons if c.against == "champion"), 0.0)


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
