"""What is in Kubeflow now, of a project and beside it."""

from __future__ import annotations

from dataclasses import dataclass, field

from infra.kubeflow import Kubeflow, Pipeline, Schedule, Version
from pipelines.deploy.marks import first_name, read_schedule, shown_name
from training_core.errors import ConfigurationError


@dataclass(frozen=True)
class Found:
    """What is there.

    Attributes:
        pipeline: None: it was never deployed.
        versions: Of it, the newest first.
        ours: The project's schedules by their names in evertrain.yaml; several of one name are
            what a crash left.
        foreign: Schedules of this pipeline that somebody else made.
        experiment: Its id; empty: it is not there.
    """

    pipeline: Pipeline | None = None
    versions: tuple[Version, ...] = ()
    ours: dict[str, list[Schedule]] = field(default_factory=dict)
    foreign: list[Schedule] = field(default_factory=list)
    experiment: str = ""

    @property
    def newest(self) -> Version | None:
        """The newest version; None: there is none."""
        return self.versions[0] if self.versions else None

    def version_name(self, version: str) -> str:
        """Name of a version by its id."""
        named = {each.id: each.name for each in self.versions}
        return named.get(version, version or "none")


def look(kubeflow: Kubeflow, *, project: str, pipeline: str, experiment: str) -> Found:
    """Look at what is there; nothing is changed.

    Args:
        kubeflow: Where.
        project: Its name, which the marks hold.
        pipeline: Name of its pipeline in Kubeflow.
        experiment: Name of its experiment in Kubeflow.

    Raises:
        ConfigurationError: The pipeline was renamed in Kubeflow.
    """
    found = kubeflow.pipelines.find(pipeline)
    if found is None:
        _stop_if_renamed(kubeflow, project, pipeline)
    versions = kubeflow.pipelines.versions(found.id) if found is not None else []
    ours, foreign = _sorted_out(kubeflow, project, found)
    return Found(found, tuple(versions), ours, foreign, kubeflow.find_experiment(experiment))


def _stop_if_renamed(kubeflow: Kubeflow, project: str, pipeline: str) -> None:
    for other in kubeflow.pipelines.all():
        if first_name(other, project) == pipeline:
            raise ConfigurationError(
                f"the pipeline {pipeline!r} at {kubeflow.host} was renamed {other.name!r}",
                hint=f"cluster.pipeline: {other.name} in evertrain.yaml to go on with it; give it "
                "its old name in Kubeflow; or delete it there, to begin anew",
            )


def _sorted_out(
    kubeflow: Kubeflow, project: str, pipeline: Pipeline | None
) -> tuple[dict[str, list[Schedule]], list[Schedule]]:
    """The project's own schedules, and others of its pipeline.

    A project may be deployed as several pipelines (staging, production), whose schedules bear the
    same mark: a schedule is of the pipeline that it starts. One whose pipeline is gone starts
    nothing any more, and is ours to clear away.
    """
    ours: dict[str, list[Schedule]] = {}
    foreign: list[Schedule] = []
    known = {pipeline.id: True} if pipeline is not None else {}
    here = pipeline.id if pipeline is not None else ""
    for schedule in kubeflow.schedules.all():
        mark = read_schedule(schedule)
        # A copy that somebody made of ours has its description too, but another name.
        if (
            mark is None
            or mark.project != project
            or schedule.name != shown_name(project, mark.schedule)
        ):
            if here and schedule.pipeline == here:
                foreign.append(schedule)
            continue
        if schedule.pipeline not in known:
            known[schedule.pipeline] = kubeflow.pipelines.get(schedule.pipeline) is not None
        if schedule.pipeline == here or not known[schedule.pipeline]:
            ours.setdefault(mark.schedule, []).append(schedule)
    return ours, foreign
