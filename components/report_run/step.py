"""Compose run.json and the pages; used by the exit handler, `evertrain report` and `data`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from components.common.champion import PromotionLog, champion_and_previous
from components.common.data_figures import SnapshotFigures
from components.common.ends import note_end
from components.common.layout import record_key
from components.common.project import Project
from components.common.records import StepRecord, read_records, step
from components.common.run_record import (
    RunRecord,
    compose,
    report_data_key,
    report_key,
    run_record_key,
)
from infra.errors import ObjectMissing, OutsideError
from infra.store import ObjectStore

if TYPE_CHECKING:
    from components.report_run.verdicts import Judgement


def run(project: str, store: str, overrides: list[str], report: str, state: str) -> None:
    """See `component.py`. `state` is only Kubeflow's word; the records say more."""
    from components.report_run.alerting import alert_once

    with step("report_run", project=project, store=store, overrides=overrides) as context:
        try:
            ended = write_report(context.project, context.store, run=context.record.run)
        finally:
            let_go(context.project, context.records, run=context.record.run)
        Path(report).parent.mkdir(parents=True, exist_ok=True)
        Path(report).write_bytes(context.store.get(report_key(context.record.run)))
        alert_once(context.project, context.store, ended)


def let_go(project: Project, store: ObjectStore, *, run: str) -> None:
    """Let go of the lease at the end of a run, if it is that run's."""
    from components.common.holding import Holding

    fence = f"run {run} may still be promoting"
    try:
        content = store.get(record_key(run, "promote_model"))
        if StepRecord.model_validate_json(content).status == "done":
            fence = ""
    except ObjectMissing:
        fence = ""
    except (OutsideError, ValueError):
        pass  # not known: as if it were
    Holding(store, run=run, settings=project.settings.lease).let_go(fence=fence)


def write_report(project: Project, store: ObjectStore, *, run: str) -> RunRecord:
    """Compose a run's record, page and its twin in JSON from its steps' records; store all.

    Nobody is told of it: that is `alerting.alert_once`, where a run ends.
    """
    from components.report_run.page import render
    from components.report_run.twin import report

    record = _composed(project, store, run)
    records: dict[str, StepRecord] = read_records(store, run)
    replay = replay_command(project, records)
    page = render(run=record, records=records, replay=replay)
    twin = report(run=record, records=records, replay=replay)
    store.put(report_key(run), page.encode())
    store.put(report_data_key(run), twin.model_dump_json(indent=1).encode())
    store.put(run_record_key(run), record.model_dump_json(indent=1).encode())
    note_end(store, record)
    return record


def write_data_page(project: Project, store: ObjectStore, *, run: str) -> Judgement:
    """Write the page of a run's data from the records of its steps; return its verdict.

    Nothing else is written: the run may still be under way.
    """
    from components.report_run.data_page import render_data

    page, judgement = render_data(
        run=_composed(project, store, run), records=read_records(store, run)
    )
    store.put(data_page_key(run), page.encode())
    return judgement


def data_page_key(run: str) -> str:
    return f"runs/{run}/data.html"


def _composed(project: Project, store: ObjectStore, run: str) -> RunRecord:
    try:
        champion = champion_and_previous(PromotionLog(store).entries())[0] or ""
    except OutsideError:
        champion = ""  # promote_model and evaluate_model refuse a damaged log; the report tells
    return compose(store, run=run, project=project.settings.name, champion=champion)


def replay_command(project: Project, records: dict[str, StepRecord]) -> str:
    """The command that runs the same again: the run's own data and overrides, as recorded."""
    words = ["evertrain", "run", str(project.folder)]
    snapshot = records.get("snapshot_data")
    if snapshot is not None and snapshot.figures:
        figures = SnapshotFigures.model_validate(snapshot.figures)
        given = figures.provenance.config.get("data", {}).get("source")
        if not isinstance(given, list):  # a list comes from evertrain.yaml or --set, as it did then
            words += ["--data", figures.source]
        for override in figures.provenance.overrides:
            words += ["--set", override]
    return shlex.join([*words, "--force"])
