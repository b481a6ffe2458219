"""The data of a run: its page, and its figures for machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from components.common.layout import project_store
from components.common.project import Project
from components.common.records import StepRecord, read_records
from components.report_run.step import data_page_key, write_data_page
from components.report_run.verdicts import DATA_STEPS, Judgement
from infra.store import ObjectStore
from pipelines.runs import find_run, location, run_names
from training_core.errors import ConfigurationError


@dataclass(frozen=True)
class DataPage:
    """A page that was written.

    Attributes:
        run: Whose data it shows.
        place: Its path, or its URI where the object store is no folder.
        judgement: Its verdict.
        figures: Of the three data steps, as recorded; empty where a step left none.
    """

    run: str
    place: str
    judgement: Judgement
    figures: dict[str, dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        """What `evertrain data --json` prints."""
        said = self.judgement
        verdict = {"verdict": said.fitness.value, "reason": said.reason, "next": said.advice}
        return {"run": self.run, "page": self.place, **verdict, **self.figures}


def write_page(project: Project, run: str = "") -> DataPage:
    """Write the page of a run's data.

    Args:
        project: The project.
        run: The run's id or how it begins; empty: the newest that took a snapshot.

    Raises:
        ConfigurationError: There is no such run.
    """
    store = project_store(project)
    name = find_run(project, store, run) if run else newest_with_snapshot(project, store)
    judgement = write_data_page(project, store, run=name)
    records = read_records(store, name)
    figures = {step: records[step].figures if step in records else {} for step in DATA_STEPS}
    return DataPage(name, location(store, data_page_key(name)), judgement, figures)


def newest_with_snapshot(project: Project, store: ObjectStore) -> str:
    """Return the newest run that took a snapshot, whatever became of it.

    Raises:
        ConfigurationError: None did.
    """
    for name in reversed(run_names(store)):
        if _took_snapshot(read_records(store, name).get("snapshot_data")):
            return name
    raise ConfigurationError(
        f"no run of {project.settings.name!r} has taken a snapshot of its data yet",
        hint=f"evertrain run {project.folder}",
    )


def _took_snapshot(record: StepRecord | None) -> bool:
    return record is not None and bool(record.figures)
