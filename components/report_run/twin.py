"""`report.json`: what the report page says, as data.

Its JSON Schema is `docs/report.schema.json`, kept equal to these classes by a test.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from components.common import refit_words
from components.common.decision_figures import EvaluateFigures, PromoteFigures, SelectFigures
from components.common.figures import BaselineFigures, Provenance
from components.common.layout import record_key
from components.common.records import StepRecord
from components.common.run_record import RunRecord
from components.report_run import costs, decision_words, pictures, words
from components.report_run.seen import Seen, absences, read
from components.report_run.verdicts import judge


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class VerdictPart(_Part):
    """The first screen of the page.

    Attributes:
        decided_by: Name of the gate that held the challenger back; empty: none did.
        confidence: Of the intervals; None: not known.
    """

    outcome: words.Outcome
    headline: str
    reason: str
    next_step: str
    decided_by: str
    confidence: float | None
    clusters_are: str


class DataPart(_Part):
    """Whether the data was fit to train on."""

    verdict: str
    headline: str
    reason: str
    advice: str
    new_objects: int | None


class SentencesPart(_Part):
    """Sentences of the page's sections; empty: there was nothing to say."""

    gates: str = ""
    differences: list[str] = []
    slices: str = ""
    noise: str = ""
    question: str = ""
    package: str = ""
    candidates: str = ""
    optimism: str = ""
    training_cost: str = ""
    refit: str = ""


class LineagePart(_Part):
    """Where everything came from.

    Attributes:
        records: Step to the key of its record in the object store, which holds all its figures.
        log_entry: Number of the promotion-log entry that was written; 0: none.
    """

    provenance: Provenance | None
    data_digest: str
    data_source: str
    compared_entry: int | None
    predictions: str
    log_entry: int
    records: dict[str, str]


class Report(_Part):
    """A run's report.

    Attributes:
        absent: Step to why it has nothing to show, for those that have not.
        finished: When the run ended.
        selection, evaluation, promotion, baselines: Figures of these steps; None: see `absent`.
        replay: The command that runs the same again.
    """

    format: Literal["evertrain/report/1"] = "evertrain/report/1"
    run: RunRecord
    verdict: VerdictPart
    data: DataPart
    sentences: SentencesPart
    selection: SelectFigures | None
    evaluation: EvaluateFigures | None
    promotion: PromoteFigures | None
    baselines: BaselineFigures | None
    finished: datetime | None
    lineage: LineagePart
    absent: dict[str, str]
    replay: str


def report(*, run: RunRecord, records: dict[str, StepRecord], replay: str) -> Report:
    """Return the page's content as data; takes what `page.render` takes."""
    seen = read(records)
    absent = absences(seen, run, records)
    judged = judge(records, seen, absent)
    snapshot, evaluated = seen.snapshot_data, seen.evaluate_model
    return Report(
        run=run,
        verdict=_verdict(run, seen),
        data=DataPart(
            verdict=judged.fitness.value,
            headline=judged.headline,
            reason=judged.reason,
            advice=judged.advice,
            new_objects=snapshot.new_count if snapshot else None,
        ),
        sentences=_sentences(seen),
        selection=seen.select_checkpoint,
        evaluation=evaluated,
        promotion=seen.promote_model,
        baselines=seen.train_baseline,
        finished=words.finished(run),
        lineage=LineagePart(
            provenance=snapshot.provenance if snapshot else None,
            data_digest=run.data_digest,
            data_source=snapshot.source if snapshot else "",
            compared_entry=evaluated.compared_entry if evaluated else None,
            predictions=evaluated.predictions if evaluated else "",
            log_entry=seen.promote_model.entry if seen.promote_model else 0,
            records={step: record_key(run.run, step) for step in records},
        ),
        absent={step: why for step, why in absent.items() if getattr(seen, step) is None},
        replay=replay,
    )


def _verdict(run: RunRecord, seen: Seen) -> VerdictPart:
    ended = words.outcome(run, seen.promote_model)
    gate = words.deciding_gate(seen.evaluate_model)
    return VerdictPart(
        outcome=ended,
        headline=words.headline(
            run, ended, seen.promote_model.version if seen.promote_model else ""
        ),
        reason=words.main_reason(run),
        next_step=words.next_step(run, ended, seen.evaluate_model),
        decided_by=gate.name if gate else "",
        confidence=pictures.confidence(seen.evaluate_model, seen.snapshot_data),
        clusters_are=pictures.cluster_unit(seen.snapshot_data),
    )


def _sentences(seen: Seen) -> SentencesPart:
    said = SentencesPart()
    judged, selected, trained = seen.evaluate_model, seen.select_checkpoint, seen.train_distributed
    unit = pictures.cluster_unit(seen.snapshot_data)
    if judged is not None:
        way = decision_words.better(judged.metric, judged.directions)
        said.gates = decision_words.decided_by(judged)
        said.slices = decision_words.slices(judged.slices)
        said.differences = [
            words.difference(c, metric=judged.metric, unit=unit, better=way)
            for c in judged.comparisons
        ]
        if judged.noise:
            said.noise = decision_words.noise(judged.noise, judged.metric)
        if judged.question:
            said.question = decision_words.question(judged.question)
        if judged.smoke:
            said.package = decision_words.smoke(judged.smoke)
    if seen.refit_model is not None:
        said.refit = refit_words.told(seen.refit_model)
    if selected is not None:
        said.candidates = decision_words.chosen(selected)
        optimism = judged.optimism if judged and judged.optimism else selected.optimism
        if optimism:
            said.optimism = decision_words.optimism(optimism, selected.metric)
    if trained is not None:
        said.training_cost = costs.of_training(trained)
    return said
