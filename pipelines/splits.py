"""The splits of an earlier run, for commands that train without being one."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from components.common.layout import project_store, splits_key
from components.common.project import Project
from components.common.records import StepRecord
from infra.errors import ObjectMissing
from pipelines.runs import find_run
from training_core.errors import ConfigurationError


class Found(NamedTuple):
    """A run, and what its split_data left."""

    run: str
    splits: dict[str, Any]


def find_splits(project: Project, run: str = "") -> Found:
    """Return the splits of a run, or of the newest that came so far.

    Args:
        project: Whose runs.
        run: The beginning of an id; empty: the newest.

    Raises:
        ConfigurationError: There is no such run, or none has divided its data yet.
    """
    store = project_store(project)
    names = [find_run(project, store, run)] if run else _newest_first(store)
    for name in names:
        try:
            record = StepRecord.model_validate_json(store.get(f"runs/{name}/snapshot_data.json"))
            return Found(name, json.loads(store.get(splits_key(record.run_key))))
        except ObjectMissing:
            continue
    which = f"run {names[0]}" if run else f"no run of {project.settings.name}"
    raise ConfigurationError(
        f"{which} has divided its data into train, validation and holdout "
        f"(object store {store.uri})",
        hint=f"evertrain run {project.folder} does that",
    )


def _newest_first(store: Any) -> list[str]:
    names = {info.key.split("/")[1] for info in store.list("runs/")}
    return sorted(names, reverse=True)
