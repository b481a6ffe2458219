"""`evertrain check`: the sanity checks of a project alone; nothing is trained, nothing is stored.

What a failed check means is the step's word: `components/check_training/step.py`.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from components.check_training.recording import figures_of
from components.common.figures import CheckFigures
from components.common.layout import project_store
from components.common.project import Project
from components.common.records import threads_of
from pipelines.runs import location

if TYPE_CHECKING:
    from training_core.checks.contract import Check, Finding

PAGE = "checks.html"  # in the object store; the next one takes its place


@dataclass(frozen=True)
class Checked:
    """What the checks said.

    Attributes:
        figures: As the step would have recorded them.
        rows: Of the sample, by part.
        divided: How validation was found, in words.
        read, objects: How many objects of the data were read, and how many there are.
        page: Where the page is; empty: none was asked for.
    """

    project: str
    figures: CheckFigures
    rows: dict[str, int]
    divided: str
    read: int
    objects: int
    page: str = ""

    def as_json(self) -> dict[str, Any]:
        """What `evertrain check --json` prints."""
        failed = [check.name for check in self.figures.checks if check.verdict == "fail"]
        said = {name: value for name, value in vars(self).items() if name != "figures"}
        return {**said, "failed": failed, **self.figures.model_dump(mode="json")}


def checks_of_project(project: Project | None) -> list[Check]:
    """Return the checks there are, a project's own among them."""
    from training_core.checks.runner import checks_of

    with _talking():
        return checks_of(project.task() if project is not None else None)


def planned_checks(project: Project, only: Sequence[str]) -> list[str]:
    """Return the names of the checks that will be made, before any data is read.

    Raises:
        ConfigurationError: The task, `only` or `checks.levels` are wrong.
    """
    _limit_threads(project)
    from training_core.checks.runner import refuse_unknown

    checks = checks_of_project(project)
    refuse_unknown(checks, [*project.settings.checks.levels, *only])
    return [check.name for check in checks if not only or check.name in only]


def check(
    project: Project,
    *,
    only: Sequence[str] = (),
    page: bool = False,
    on_finding: Callable[[Finding], None] = lambda finding: None,
) -> Checked:
    """Read a sample of the project's data and make the checks on it.

    Args:
        project: Opened with its overrides.
        only: Names of the checks to make; empty: all of them.
        page: Whether to write `PAGE`.
        on_finding: Called with each finding as soon as it is there.

    Raises:
        StoppedByGate: There are no rows to check with.
        ConfigurationError: Settings or names are wrong.
    """
    settings = project.settings
    _limit_threads(project)
    with _talking():
        import torch

        from pipelines.check_rows import read_rows
        from training_core.checks.runner import run_checks
        from training_core.checks.subject import Subject

        torch.set_num_threads(threads_of(settings.training))
        task = project.task()
        rows = read_rows(project, task)
        subject = Subject(
            task,
            rows.train,
            validation=rows.validation,
            training=settings.training,
            settings=settings.checks,
            planned_rows=rows.planned,
            lost_labels=rows.lost,
        )
        figures = figures_of(run_checks(subject, only=only, on_finding=on_finding))
    return Checked(
        project=settings.name,
        figures=figures,
        rows={"train": len(rows.train), "validation": len(rows.validation)},
        divided=rows.divided,
        read=rows.read,
        objects=rows.objects,
        page=write_page(project, figures) if page else "",
    )


def _talking() -> contextlib.AbstractContextManager[object]:
    """What a task prints is talk, for stdout is data."""
    return contextlib.redirect_stdout(sys.stderr)


def _limit_threads(project: Project) -> None:
    """Say how many threads to use before torch and BLAS are imported: they read it then."""
    os.environ.setdefault("OMP_NUM_THREADS", str(threads_of(project.settings.training)))


def write_page(project: Project, figures: CheckFigures) -> str:
    """Write the page of the checks; return where it is."""
    from components.report_run.checks_page import render_checks

    store = project_store(project)
    content = render_checks(figures, project=project.settings.name, when=datetime.now(UTC))
    store.put(PAGE, content.encode())
    return location(store, PAGE)
