"""Runs of a project: their records and reports."""

from __future__ import annotations

from components.common.layout import location as location
from components.common.layout import project_store
from components.common.project import Project
from components.common.run_record import RunRecord, report_key, run_record_key
from components.report_run.step import write_report
from infra.errors import ObjectMissing
from infra.store import ObjectStore
from training_core.errors import ConfigurationError


def all_runs(project: Project) -> list[RunRecord]:
    """Return the records of all runs that have ended, oldest first."""
    store = project_store(project)
    found = []
    for run in run_names(store):
        try:
            found.append(RunRecord.model_validate_json(store.get(run_record_key(run))))
        except ObjectMissing:
            continue  # under way, or killed: the next run writes its record
    return found


def rewrite(project: Project, run: str) -> tuple[RunRecord, str]:
    """Compose a run's record and report again; return them and where the page is.

    Raises:
        ConfigurationError: There is no such run.
    """
    store = project_store(project)
    name = find_run(project, store, run)
    return write_report(project, store, run=name), report_location(store, name)


def find_run(project: Project, store: ObjectStore, run: str) -> str:
    """Return the id that begins with `run`.

    Raises:
        ConfigurationError: None does, or several do.
    """
    names = run_names(store)
    matching = [name for name in names if name.startswith(run)]
    if len(matching) != 1:
        raise ConfigurationError(
            f"{len(matching) or 'no'} runs of {project.settings.name!r} begin with {run!r}",
            hint=f"the newest are {', '.join(names[-3:]) or 'none'}; see evertrain runs "
            f"{project.folder}",
        )
    return matching[0]


def report_location(store: ObjectStore, run: str) -> str:
    """Where a person finds a run's report."""
    return location(store, report_key(run))


def run_names(store: ObjectStore) -> list[str]:
    """Return the ids of all runs, the oldest first."""
    return sorted({info.key.split("/")[1] for info in store.list("runs/")})
