"""Whether a whole run can take a project's task: asked before anything is read or trained."""

from __future__ import annotations

from components.common.project import FILE_NAME, Project
from training_core.errors import ConfigurationError
from training_core.task import Task

_BINARY_ONLY = "validate_data and split_data take binary tasks only so far"


def runnable_task(project: Project) -> Task:
    """Return the project's task, if every step of a run can take it.

    Raises:
        ConfigurationError: It cannot be imported, is of a kind that some steps do not know, or has
            no rule that `decision.must_beat` asks for.
    """
    task, settings = project.task(), project.settings
    where = f"{project.folder / FILE_NAME}: task.path {settings.task.path!r}"
    if task.kind != "binary":
        raise ConfigurationError(
            f"{where} is a {task.kind} task, and {_BINARY_ONLY}",
            hint=f"its training code can be checked all the same: evertrain check {project.folder}",
        )
    if "rule" in settings.decision.must_beat and not has_rule(task):
        raise ConfigurationError(
            f"{where} has no rule, and decision.must_beat names it",
            hint=f"write {type(task).__name__}.rule(frame), or take it from must_beat",
        )
    return task


def has_rule(task: Task) -> bool:
    """Whether the task brings a rule of its own."""
    return type(task).rule is not Task.rule
