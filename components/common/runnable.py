"""Whether a whole run can take a project's task: asked before anything is read or trained."""

from __future__ import annotations

from components.common.decision_settings import DecisionSettings
from components.common.metrics import METRICS
from components.common.project import FILE_NAME, Project
from training_core.errors import ConfigurationError
from training_core.task import Kind, Task

_WITH_CLASSES = ("binary", "multiclass")


def runnable_task(project: Project) -> Task:
    """Return the project's task, if the run's settings fit it.

    Raises:
        ConfigurationError: It cannot be imported, has no classes for `split.by: stratified`, no
            metric that `decision` names, or no rule that `decision.must_beat` asks for.
    """
    task, settings = project.task(), project.settings
    where = f"{project.folder / FILE_NAME}: task.path {settings.task.path!r}"
    if settings.split.by == "stratified" and task.kind not in _WITH_CLASSES:
        raise ConfigurationError(
            f"{where} is a {task.kind} task, and split.by: stratified divides within classes",
            hint="use split.by: hash, or time, or group",
        )
    refuse_unknown_metrics(task.kind, settings.decision, where=where)
    if "rule" in settings.decision.must_beat and not has_rule(task):
        raise ConfigurationError(
            f"{where} has no rule, and decision.must_beat names it",
            hint=f"write {type(task).__name__}.rule(frame), or take it from must_beat",
        )
    return task


def refuse_unknown_metrics(kind: Kind, settings: DecisionSettings, *, where: str) -> None:
    """Refuse settings that name a metric which the kind of task does not have.

    Raises:
        ConfigurationError: Names the first.
    """
    for name in [settings.metric, *settings.floors]:
        if name not in METRICS[kind]:
            key = "decision.metric" if name == settings.metric else "decision.floors"
            raise ConfigurationError(
                f"{where} is a {kind} task, which has no metric {name!r} ({key})",
                hint=f"set {key} to one of: {', '.join(METRICS[kind])}",
            )


def has_rule(task: Task) -> bool:
    """Whether the task brings a rule of its own."""
    return type(task).rule is not Task.rule
