"""What a training that came to its end has given, kept in the object store beside its checkpoints.

A step that is started again (its pod was lost before it could report, or another run has the same
key) returns it at once. It counts only for the same settings and splits, and only while the
checkpoints that it names are there.
"""

from __future__ import annotations

import json
from typing import Any

from components.common.layout import checkpoint_prefix, digest_of
from components.common.project import Project
from infra.errors import ObjectMissing
from infra.store import ObjectStore

_FORMAT = "evertrain/result/1"


def result_key(run_key: str) -> str:
    """Where the result of a training lies."""
    return f"{checkpoint_prefix(run_key)}/result.json"


def made_of(project: Project, splits: dict[str, Any]) -> str:
    """Return a digest of what a training is made of, beside what its run's key says."""
    settings = project.settings
    return digest_of(
        {
            "task": settings.task.model_dump(mode="json"),
            "training": settings.training.model_dump(mode="json"),
            "splits": {name: part["sha256"] for name, part in splits["parts"].items()},
        }
    )


def keep_result(store: ObjectStore, run_key: str, result: dict[str, Any], *, made_of: str) -> None:
    """Keep what a training has given."""
    content = {"format": _FORMAT, "made_of": made_of, "result": result}
    store.put(result_key(run_key), json.dumps(content).encode())


def kept_result(store: ObjectStore, run_key: str, *, made_of: str) -> dict[str, Any] | None:
    """Return what a training has given, or None if it has not come to its end (or not this one)."""
    try:
        content = json.loads(store.get(result_key(run_key)))
    except (ObjectMissing, ValueError):
        return None
    if content.get("format") != _FORMAT or content["made_of"] != made_of:
        return None
    result: dict[str, Any] = content["result"]
    prefix = checkpoint_prefix(run_key)
    there = all(
        store.info(f"{prefix}/{step:09d}/manifest.json") is not None
        for step in result["checkpoints"]
    )
    return result if there and result["checkpoints"] else None


def has_result(store: ObjectStore, run_key: str) -> bool:
    """Say whether a training that is under way has come to its end: `drop_result` went before."""
    return store.info(result_key(run_key)) is not None


def drop_result(store: ObjectStore, run_key: str) -> None:
    """Remove a result that does not count, before training goes on."""
    store.delete(result_key(run_key))
