"""One run of the real pipeline at each date, on what had arrived by then; resumable."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from components.common.data_figures import SnapshotFigures
from components.common.provenance import code_digest
from components.common.records import StepRecord, read_records
from components.common.run_record import RunRecord
from infra.errors import OutsideError
from pipelines.backtest.arriving import arrive
from pipelines.backtest.judging import judged
from pipelines.backtest.notes import Note, Notes, read_notes, write_notes
from pipelines.backtest.schedule import Period
from pipelines.backtest.settings import Place
from pipelines.local import run_locally
from training_core.errors import ConfigurationError

OnStep = Callable[[str, str, str], None]  # the date, the step, `started` or `ended`


def replay(place: Place, schedule: list[Period], *, on_step: OnStep) -> Iterator[tuple[str, Note]]:
    """Run the pipeline at each date that is not done yet; yield each date with its note.

    Raises:
        OutsideError: A run failed for reasons outside; the same command goes on from there.
        ConfigurationError: A run found the project wrong.
    """
    notes = read_notes(place.folder)
    for period in schedule:
        if period.name not in notes.dates:
            arrive(place, period.start)
            notes.dates[period.name] = _run(place, period.name, notes, on_step)
            write_notes(place.folder, notes)
        yield period.name, notes.dates[period.name]


def model_folder(place: Place, date: str) -> Path:
    """Where the model of a date lies."""
    return place.folder / "models" / date


def records_of(place: Place, note: Note) -> dict[str, StepRecord]:
    """What the steps of a date's run said."""
    return read_records(place.store, note.run)


def _run(place: Place, date: str, notes: Notes, on_step: OnStep) -> Note:
    with place.environment():
        record = run_locally(
            place.project,
            data=str(place.data),
            overrides=place.overrides,
            force=False,
            on_step=lambda step, event: on_step(date, step, event),
        )
    _refuse(record, date)
    run, code = record.run, code_digest(place.real)
    earlier = {note.run_key for note in notes.dates.values()}
    if record.status == "nothing_new":
        if record.key in earlier:
            return Note(
                run=run, run_key=record.key, outcome="nothing", model=False, code=code,
                reason="no row had arrived since the date before",
                seconds=_seconds(read_records(place.store, run)),
            )  # fmt: skip
        run = _finished_before(place, run)  # killed between the run's end and our note of it
    records = read_records(place.store, run)
    decision = judged(records)
    model = decision is not None and _keep_model(place, date, record.key)
    return Note(
        run=run,
        run_key=record.key,
        outcome="failed" if record.status == "failed" else "stopped" if decision is None
        else "promoted" if decision.promoted else "held",
        reason=decision.reason if decision else next(iter(record.reasons), "it did not end"),
        model=model,
        seconds=_seconds(records),
        code=code,
    )  # fmt: skip


def _refuse(record: RunRecord, date: str) -> None:
    """Go on only where the run's end says something of the data or the model of its date."""
    if record.status != "skipped" and record.exit_code in (0, 1):
        return
    if record.exit_code == 130:
        raise KeyboardInterrupt
    kind = ConfigurationError if record.exit_code == 2 else OutsideError
    words = next(iter(record.reasons), "it did not end")
    raise kind(f"the run of {date} failed: {words}", hint=record.hint or "run the command again")


def _finished_before(place: Place, run: str) -> str:
    figures = read_records(place.store, run)["snapshot_data"].figures
    return SnapshotFigures.model_validate(figures).same_key_run or run


def _keep_model(place: Place, date: str, run_key: str) -> bool:
    """Copy the package of a run's chosen checkpoint from where kfp.local left it."""
    kept = model_folder(place, date)
    if (kept / "package.json").exists():
        return True
    for file in sorted((place.home / "kfp").rglob("package.json")):
        if json.loads(file.read_text()).get("facts", {}).get("run_key") == run_key:
            unfinished = kept.with_name(f"{date}.unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            shutil.copytree(file.parent, unfinished)
            unfinished.rename(kept)
            return True
    return False


def _seconds(records: dict[str, StepRecord]) -> dict[str, float]:
    return {name: record.seconds for name, record in records.items()}
