"""Score the holdout with challenger, champion and baselines, and decide."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from components.common.artifacts import (
    ClassificationArtifact,
    MetricsArtifact,
    log_metrics,
    read_json,
    write_json,
)
from components.common.champion import PromotionEntry, PromotionLog, champion_to_beat
from components.common.decision_figures import (
    Gate,
    NoiseFigure,
    QuestionFigure,
)
from components.common.labels import label_columns
from components.common.layout import fetch_object, hashes_of
from components.common.metrics import Floats
from components.common.predictions import as_columns, from_columns
from components.common.records import StepContext, step
from components.common.rows import clusters_of, read_part, write_frame
from components.common.smoke import smoke_test
from components.evaluate_model.champion_scores import score_champion
from components.evaluate_model.comparing import Holdout
from components.evaluate_model.curves import roc
from components.evaluate_model.gates import champion_skipped
from components.evaluate_model.judging import judge, refuse_unknown
from components.evaluate_model.noise import retraining_noise, settings_digest, train_replicas
from components.evaluate_model.questions import Ledger, row_keys
from components.evaluate_model.selection import observed_optimism

_REHEARSED = 256  # holdout rows that are kept with the package, to try it out
_LEAST = 100  # rows that must be left of a worn holdout


class Outputs(NamedTuple):
    verdict: str


def run(
    project: str,
    store: str,
    overrides: list[str],
    run_key: str,
    splits: str,
    model: str,
    baselines: str,
    decision: str,
    metrics: MetricsArtifact,
    classification: ClassificationArtifact,
) -> Outputs:
    """See `component.py`."""
    with step(
        "evaluate_model", project=project, store=store, overrides=overrides, run_key=run_key
    ) as context:
        from training_core.package import Package

        settings = context.project.settings
        task = context.project.task()
        parts = read_json(splits)
        rows = read_part(context, parts, "holdout")
        baseline = from_columns(
            pd.read_parquet(
                fetch_object(
                    context.store, read_json(baselines)["holdout_predictions"], context.cache
                )
            )
        )
        champion = champion_to_beat(PromotionLog(context.store), run_key)
        question, gates, asked = ask(context, rows, champion)
        rows = rows[asked].reset_index(drop=True)
        truth = task.target(rows)
        holdout = Holdout(
            kind=task.kind, truth=truth, clusters=clusters_of(rows, settings), rows=rows,
            classes=_classes(task),
        )  # fmt: skip
        refuse_unknown(holdout, settings.decision)
        package = Package(Path(model), type(task.preprocessor()))
        own = package.predict(rows)
        predictions = {"challenger": own}
        if champion is not None:
            scored, gate = score_champion(context, champion, rows, parts["seen"], task)
            predictions |= {"champion": scored} if scored is not None else {}
            gates += [gate] if gate is not None else []
        predictions |= {name: each[asked] for name, each in baseline.items()}
        raw = rows[package.columns].head(_REHEARSED)
        smoke = smoke_test(Path(model), raw, own[: len(raw)])
        figures = judge(
            holdout,
            predictions,
            settings=settings.decision,
            noise=_noise(context, task, parts),
            smoke=smoke,
            question=question,
            first_gates=gates,
            without=[*label_columns(task), settings.data.time_column or ""],
            optimism=observed_optimism(
                context.store,
                run_key,
                holdout,
                own,
                resamples=settings.decision.resamples,
                confidence=question.confidence,
            ),
        )
        figures.package = hashes_of(Path(model))
        figures.compared_entry = champion.number if champion else 0
        figures.champion = champion.version if champion else ""
        figures.predictions = f"objects/{_keep(context, rows, truth, predictions)}"
        rehearsed = pd.concat([raw, as_columns({"prediction": own[: len(raw)]})], axis=1)
        figures.rehearsal = write_frame(context.store, rehearsed, _scratch(context, "rehearsal"))
        context.say(figures)
        write_json(decision, figures.model_dump(mode="json"))
        log_metrics(metrics, figures.metrics["challenger"])
        if figures.roc:
            classification.log_roc_curve(*roc(truth, own))
        if figures.confusion:
            classification.log_confusion_matrix(figures.classes, figures.confusion)
        write_json(classification.path, {"roc": figures.roc, "confusion": figures.confusion})
        return Outputs(figures.verdict)


def ask(
    context: StepContext, rows: pd.DataFrame, champion: PromotionEntry | None
) -> tuple[QuestionFigure, list[Gate], Any]:
    """Write the question down before its answer is known; leave out rows asked too often.

    Returns:
        What the ledger says; a gate that holds back where too few rows are left; which rows are
        asked, bool [N] (all of them in that case).
    """
    settings, record = context.project.settings, context.record
    rule, number = settings.decision, champion.number if champion else 0
    keys = row_keys(rows, settings.data.row_key)
    ledger = Ledger(context.store)
    uses = ledger.uses(keys, run_key=record.run_key, champion=number)
    fresh = uses <= rule.holdout_uses
    gates: list[Gate] = []
    if fresh.sum() < min(_LEAST, len(rows)) and champion is not None:
        gates = [
            champion_skipped(
                f"the holdout is worn: {int((~fresh).sum())} of {len(rows)} rows were asked for a "
                f"decision {rule.holdout_uses:g} times or more (decision.holdout_uses), and "
                f"{int(fresh.sum())} are left: wait for new rows"
            )
        ]
    if gates or champion is None:
        fresh = np.ones(len(rows), dtype=bool)
    asked = ledger.ask(
        keys[fresh], run=record.run, run_key=record.run_key, champion=number,
        confidence=rule.confidence, left_out=int((~fresh).sum()),
    )  # fmt: skip
    figure = QuestionFigure(
        number=asked.number, uses=asked.uses, confidence=asked.confidence, rows=asked.rows,
        left_out=asked.left_out,
    )  # fmt: skip
    return figure, gates, fresh


def _noise(context: StepContext, task: Any, parts: dict[str, Any]) -> NoiseFigure:
    settings, record = context.project.settings, context.record
    rule, training = settings.decision, settings.training
    return retraining_noise(
        context.store,
        run=record.run,
        run_key=record.run_key,
        digest=settings_digest(training, rule, task),
        settings=rule,
        train=lambda: train_replicas(
            task,
            read_part(context, parts, "train"),
            read_part(context, parts, "validation"),
            training=training,
            settings=rule,
            run=record.run,
        ),
    )


def _classes(task: Any) -> list[str]:
    if task.kind == "binary":
        return ["no", "yes"]
    return [str(each) for each in getattr(task, "classes", [])]


def _keep(
    context: StepContext, rows: pd.DataFrame, truth: Any, predictions: dict[str, Floats]
) -> str:
    """Store every model's prediction for every holdout row, with the row's key."""
    kept = rows[context.project.settings.data.row_key].reset_index(drop=True)
    told = as_columns({"truth": np.asarray(truth, dtype=np.float64), **predictions})
    return write_frame(
        context.store, pd.concat([kept, told], axis=1), _scratch(context, "predictions")
    )


def _scratch(context: StepContext, what: str) -> Path:
    return context.home / "scratch" / f"{context.record.run_key}-{what}"
