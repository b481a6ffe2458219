"""Which raw columns hold what is to be predicted."""

from __future__ import annotations

from training_core.task import Task


def label_columns(task: Task) -> list[str]:
    """Return the label's column, and those of the other labels where there are several."""
    return list(dict.fromkeys([task.label, *getattr(task, "labels", ())]))
