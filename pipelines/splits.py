"""The splits of an earlier run, for commands that train without being one."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from components.common.layout import object_key, project_store, splits_key
from components.common.project import Project
from components.common.records import StepRecord
from infra.errors import ObjectMissing
from infra.store import ObjectStore
from pipelines.runs import find_run, run_names
from training_core.errors import ConfigurationError


class Found(NamedTuple):
    """A run, and what its split_data left."""

    run: str
    splits: dict[str, Any]


def find_splits(project: Project, run: str = "") -> Found:
    """Return the splits of a run, or of the newest that has some.

    Args:
        project: Whose runs.
        run: The beginning of an id; empty: the newest.

    Raises:
        ConfigurationError: There is no such run, or none has divided its data yet.
    """
    store = project_store(project)
    found = _of(store, find_run(project, store, run)) if run else newest_splits(store)
    if found:
        return found
    which = f"run {run}" if run else f"no run of {project.settings.name}"
    raise ConfigurationError(
        f"{which} has train, validation and holdout in the object store {store.uri}",
        hint=f"evertrain run {project.folder} divides the data",
    )


def newest_splits(store: ObjectStore) -> Found | None:
    """Return the splits of the newest run whose parts are still stored; None: no run has."""
    return next((found for run in reversed(run_names(store)) if (found := _of(store, run))), None)


def _of(store: ObjectStore, run: str) -> Found | None:
    try:
        record = StepRecord.model_validate_json(store.get(f"runs/{run}/snapshot_data.json"))
        splits = json.loads(store.get(splits_key(record.run_key)))
    except ObjectMissing:
        return None
    stored = all(store.info(object_key(part["sha256"])) for part in splits["parts"].values())
    return Found(run, splits) if stored else None
