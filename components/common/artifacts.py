"""Artifacts as the steps see them: paths and a few methods, so that no step knows KFP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol


class MetricsArtifact(Protocol):
    """KFP's `Metrics`."""

    path: str

    def log_metric(self, metric: str, value: float) -> None:
        """Show a figure in the user interface."""


class ClassificationArtifact(Protocol):
    """KFP's `ClassificationMetrics`."""

    path: str

    def log_roc_curve(self, fpr: list[float], tpr: list[float], threshold: list[float]) -> None:
        """Show a ROC curve."""

    def log_confusion_matrix(self, categories: list[str], matrix: list[list[int]]) -> None:
        """Show a confusion matrix; a row for each true class."""


def log_metrics(artifact: MetricsArtifact, values: dict[str, float]) -> None:
    """Show figures, and leave them at the artifact's path (KFP's local cache looks for a file)."""
    for name, value in values.items():
        artifact.log_metric(name, value)
    write_json(artifact.path, values)


def write_json(path: str, value: Any) -> None:
    """Write plain data where an artifact belongs."""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value, indent=1))


def read_json(path: str) -> Any:
    """Read what `write_json` wrote."""
    return json.loads(Path(path).read_text())
