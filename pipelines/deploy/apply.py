"""Doing what the plan says, so that a crash between any two requests leaves what can be mended.

A schedule cannot be changed, so it is replaced: the new one is made disabled, the old one disabled,
the new one enabled, the old one deleted. There is one at any time, and never two that fire. Between
the second and the third request none fires; so a failure there lets the old one fire again, and
Ctrl-C waits until it is over. What remains is a kill in that moment: the next deploy finds both,
and goes on from there.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FrameType

from components.common.project import Project
from infra.errors import OutsideError
from infra.kubeflow import Kubeflow, NotThere, Schedule, Version
from pipelines.deploy.marks import (
    mark_pipeline,
    mark_schedule,
    mark_version,
    read_schedule,
    spec_of,
)
from pipelines.deploy.package import Package
from pipelines.deploy.plan import Plan, ScheduleWork, filled_in
from pipelines.deploy.state import Found

Say = Callable[[str], None]
_DONE = {
    "create": "made", "replace": "replaced", "enable": "enabled", "disable": "disabled",
    "remove": "removed",
}  # fmt: skip


def apply(
    plan: Plan,
    project: Project,
    package: Package | None,
    *,
    kubeflow: Kubeflow,
    found: Found,
    say: Say,
) -> Version | None:
    """Do what the plan says; return the version that is the newest then.

    Args:
        plan: What has to be done.
        project: Whose it is.
        package: What is uploaded; None: nothing is.
        kubeflow: Where.
        found: What was there when the plan was made.
        say: Told of each thing that was done.
    """
    version = found.newest
    experiment = found.experiment
    if package is not None:
        version = _uploaded(plan, project, package, kubeflow, found, say)
        experiment = kubeflow.experiment(plan.experiment.name)
        if plan.experiment.kind == "create":
            say(f"made the experiment {plan.experiment.name}")
    for work in plan.schedules:
        if not work.to_do:
            continue
        wanted = None
        if work.wanted is not None and version is not None:
            wanted = filled_in(
                work.wanted, pipeline=version.pipeline, version=version.id, experiment=experiment
            )
        _apply_schedule(work, wanted, project.settings.name, kubeflow)
        say(f"{_DONE[work.line.kind]} the schedule {work.name}")
    return version


def tidy(plan: Plan, *, kubeflow: Kubeflow, say: Say) -> None:
    """Take away what there is twice, because another deploy was at it at the same time.

    Args:
        plan: Made after `apply`. Every deploy keeps the same one of two.
        kubeflow, say: As for `apply`.
    """
    for work in plan.schedules:
        if work.wanted is not None and work.kept is not None and work.others:
            _switch(
                kubeflow,
                work.kept,
                [each for each in work.others if each.enabled],
                on=work.wanted.enabled,
            )
            for other in work.others:
                kubeflow.schedules.delete(other)
            say(f"removed a second schedule {work.name}: another deploy was at it as well")


def _uploaded(
    plan: Plan, project: Project, package: Package, kubeflow: Kubeflow, found: Found, say: Say
) -> Version | None:
    pipeline = found.pipeline
    if pipeline is None:
        name = plan.pipeline.name
        pipeline = kubeflow.pipelines.create(
            name, description=mark_pipeline(project.settings.name, name)
        )
        say(f"made the pipeline {name}")
    if not plan.version:
        return found.newest
    version = kubeflow.pipelines.upload(
        package.file,
        pipeline=pipeline,
        name=plan.version,
        description=mark_version(package.image, package.digest),
    )
    say(f"uploaded version {plan.version}")
    return version


def _apply_schedule(
    work: ScheduleWork, wanted: Schedule | None, project: str, kubeflow: Kubeflow
) -> None:
    schedules, kept = kubeflow.schedules, work.kept
    firing = [each for each in work.others if each.enabled]
    if wanted is not None and kept is None:
        marked = replace(
            wanted,
            enabled=wanted.enabled and not firing,
            description=mark_schedule(
                work.words, project=project, schedule=work.name, spec=spec_of(wanted)
            ),
        )
        kept = schedules.create(marked, is_it=_made_now(marked, project, work))
    if wanted is not None and kept is not None:
        _switch(kubeflow, kept, firing, on=wanted.enabled)
    for other in work.others:
        schedules.delete(other)


def _made_now(marked: Schedule, project: str, work: ScheduleWork) -> Callable[[Schedule], bool]:
    """Whether a schedule is the one that was just made, its reply lost."""
    before = {each.id for each in work.others}

    def is_it(there: Schedule) -> bool:
        mark = read_schedule(there)
        return (
            there.id not in before
            and mark is not None
            and (mark.project, mark.schedule, mark.spec) == (project, work.name, spec_of(marked))
            and there.version == marked.version
        )

    return is_it


def _switch(kubeflow: Kubeflow, kept: Schedule, firing: list[Schedule], *, on: bool) -> None:
    """Let the new schedule fire, or not, and the old ones no more."""
    schedules = kubeflow.schedules
    stopped: list[Schedule] = []
    with _uninterrupted():
        try:
            for other in firing:
                stopped.append(other)
                with contextlib.suppress(NotThere):  # another deploy has deleted it
                    schedules.disable(other)
            if on != kept.enabled:
                schedules.enable(kept) if on else schedules.disable(kept)
        except OutsideError:
            if on and stopped:
                with contextlib.suppress(OutsideError):
                    schedules.disable(kept)  # it may have been enabled, and the reply lost
                    schedules.enable(stopped[0])  # several may have fired: one is enough
            raise


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Put Ctrl-C and SIGTERM off until the end of the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def put_off(number: int, frame: FrameType | None) -> None:
        came.append(number)

    before = {held: signal.signal(held, put_off) for held in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for held, handler in before.items():
            signal.signal(held, handler)
        if came:
            signal.raise_signal(came[0])
