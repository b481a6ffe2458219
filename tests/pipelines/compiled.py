"""A compiled pipeline, read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def tasks_of(file: Path) -> dict[str, Any]:
    """Tasks of the DAG that trains, by step."""
    components = next(yaml.safe_load_all(file.read_text()))["components"]
    dags = [each["dag"]["tasks"] for each in components.values() if "dag" in each]
    (found,) = (tasks for tasks in dags if "train-distributed" in tasks)
    return {name.replace("-", "_"): task for name, task in found.items()}


def overrides_of(task: dict[str, Any]) -> str:
    given = task["inputs"]["parameters"]["overrides"]
    if "taskOutputParameter" in given:
        return str(given["taskOutputParameter"]["producerTask"])
    return str(given["componentInputParameter"])
