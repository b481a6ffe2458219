"""What has to be done so that Kubeflow has what the file says; worked out, not done."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from components.common.cluster_settings import ScheduleSettings
from components.common.project import Project
from infra.kubeflow import Schedule
from pipelines.cron import parse_cron
from pipelines.deploy.marks import read_schedule, read_version, shown_name, spec_of
from pipelines.deploy.package import Package
from pipelines.deploy.state import Found

Kind = Literal["create", "upload", "replace", "enable", "disable", "remove", "keep", "leave"]


@dataclass(frozen=True)
class Line:
    """One line of a plan, for a person and for `--json`.

    Attributes:
        changes: What is different, as (what, now, wanted).
    """

    kind: Kind
    what: str
    name: str
    why: str
    changes: tuple[tuple[str, Any, Any], ...] = ()


@dataclass(frozen=True)
class ScheduleWork:
    """What becomes of one schedule.

    Attributes:
        name: In evertrain.yaml.
        wanted: What is to be there; its experiment and version are filled in when they are known.
            None: it left the file.
        words: When it fires.
        kept: What is there and right already, but perhaps for being enabled; None: nothing is.
        others: What is there and goes.
    """

    name: str
    wanted: Schedule | None
    words: str
    kept: Schedule | None
    others: tuple[Schedule, ...]
    line: Line

    @property
    def to_do(self) -> bool:
        return self.line.kind != "keep"


@dataclass(frozen=True)
class Plan:
    """Everything that has to be done.

    Attributes:
        version: Name of the version to upload; empty: the newest is the same.
    """

    pipeline: Line
    version: str
    upload: Line
    experiment: Line
    schedules: tuple[ScheduleWork, ...]
    left: tuple[Line, ...]

    @property
    def lines(self) -> list[Line]:
        """Every line, in the order of doing."""
        first = [self.pipeline, self.upload, self.experiment]
        return [*first, *(work.line for work in self.schedules), *self.left]

    @property
    def to_do(self) -> bool:
        """Whether there is anything to do."""
        return any(line.kind not in ("keep", "leave") for line in self.lines)


def make_plan(project: Project, package: Package | None, found: Found) -> Plan:
    """Work out what has to be done.

    Args:
        project: What the file says.
        package: The compiled pipeline; None: the schedules are taken away, and nothing else.
        found: What is there.
    """
    settings, cluster = project.settings, project.settings.cluster
    pipeline, experiment = cluster.pipeline or settings.name, cluster.experiment or settings.name
    version = _version_to_upload(package, found)
    wanted = settings.schedules if package is not None else ()
    work = [_schedule(project, each, found, fresh=bool(version)) for each in wanted]
    names = {each.name for each in wanted}
    why = "it is no longer in the file" if package is not None else "--remove"
    work += [_gone(name, found.ours[name], why) for name in sorted(set(found.ours) - names)]
    return Plan(
        pipeline=_there("pipeline", pipeline, is_there=found.pipeline is not None or not package),
        version=version,
        upload=_upload(version, package, found),
        experiment=_there("experiment", experiment, is_there=bool(found.experiment) or not package),
        schedules=tuple(work),
        left=tuple(
            Line("leave", "schedule", each.name, "somebody else's: it is left alone")
            for each in found.foreign
        ),
    )


def _there(what: str, name: str, *, is_there: bool) -> Line:
    if is_there:
        return Line("keep", what, name, "")
    return Line("create", what, name, "it is not there yet")


def _version_to_upload(package: Package | None, found: Found) -> str:
    """Its name: a number that grows, so that people see the order, and its content's hash."""
    if package is None or (found.newest and read_version(found.newest) == package.digest):
        return ""
    number = max((each.number for each in found.versions), default=0) + 1
    return f"{number}-{package.digest[:12]}"


def _upload(version: str, package: Package | None, found: Found) -> Line:
    newest = found.newest.name if found.newest else "none"
    if not version or package is None:
        return Line("keep", "version", newest, "")
    why = "the first one"
    if found.newest:
        known = any(read_version(each) == package.digest for each in found.versions)
        by_hand = not read_version(found.newest)
        why = (
            f"{newest} was uploaded by somebody else, by hand" if by_hand
            else f"what was deployed once, before {newest}" if known
            else f"what is compiled now is not what is in {newest}"
        )  # fmt: skip
    return Line("upload", "version", version, why)


def _schedule(
    project: Project, asked: ScheduleSettings, found: Found, *, fresh: bool
) -> ScheduleWork:
    cluster = project.settings.cluster
    words = parse_cron(asked.cron, zone=cluster.timezone).words()
    newest = "" if fresh or found.newest is None else found.newest.id
    wanted = Schedule(
        id="",
        name=shown_name(project.settings.name, asked.name),
        description="",
        enabled=asked.enabled,
        pipeline=found.pipeline.id if found.pipeline else "",
        version=newest,
        experiment=found.experiment,
        cron=" ".join(asked.cron.split()),
        parameters=parameters_of(asked.settings, force=asked.force),
        catch_up=asked.catch_up,
        service_account=cluster.service_account,
    )
    there = found.ours.get(asked.name, [])
    right = [each for each in there if newest and _same(each, wanted)]
    # Of several the same one is kept by every deploy, so that two at once do not keep none.
    kept = min(right, key=lambda each: (not each.enabled, each.id), default=None)
    others = tuple(each for each in there if each is not kept)
    line = _line(asked.name, wanted, words, kept, others, found)
    return ScheduleWork(asked.name, wanted, words, kept, others, line)


def parameters_of(settings: tuple[str, ...] | list[str], *, force: bool) -> dict[str, Any]:
    """The pipeline's parameters for a run; the rest has been compiled in."""
    return {"overrides": list(settings), "force": force}


def _same(there: Schedule, wanted: Schedule) -> bool:
    return (
        spec_of(there) == spec_of(wanted)
        and there.version == wanted.version
        and there.pipeline == wanted.pipeline
    )


def _line(
    name: str,
    wanted: Schedule,
    words: str,
    kept: Schedule | None,
    others: tuple[Schedule, ...],
    found: Found,
) -> Line:
    state = words if wanted.enabled else f"{words}, disabled"
    if kept is None and not others:
        return Line("create", "schedule", name, state)
    if kept is None:
        changes = _changes(others[0], wanted, found)
        by_hand = _edited(others[0])
        why = f"{state}; it was changed by hand in Kubeflow, and is put back" if by_hand else state
        return Line("replace", "schedule", name, why, changes)
    if others:
        more = f"{len(others)} more of it: what a deploy left that was cut short"
        return Line("replace", "schedule", name, f"{state}; there {_are(others)} {more}")
    if kept.enabled == wanted.enabled:
        return Line("keep", "schedule", name, state)
    kind: Kind = "enable" if wanted.enabled else "disable"
    now, then = ("enabled" if on else "disabled" for on in (kept.enabled, wanted.enabled))
    why = f"{words}; it is {now} in Kubeflow, {then} in the file"
    return Line(kind, "schedule", name, why, (("enabled", kept.enabled, wanted.enabled),))


def _are(several: tuple[Schedule, ...]) -> str:
    return "is" if len(several) == 1 else "are"


def _edited(there: Schedule) -> bool:
    """Whether it is no longer what it was deployed as."""
    mark = read_schedule(there)
    return mark is not None and mark.spec != spec_of(there)


def _changes(there: Schedule, wanted: Schedule, found: Found) -> tuple[tuple[str, Any, Any], ...]:
    shown = {
        "cron": (there.cron or f"every {there.every} s", wanted.cron),
        "parameters": (there.parameters, wanted.parameters),
        "catch_up": (there.catch_up, wanted.catch_up),
        "max_concurrency": (there.max_concurrency, wanted.max_concurrency),
        "service_account": (there.service_account, wanted.service_account),
        "starts": (there.starts, wanted.starts),
        "ends": (there.ends, wanted.ends),
        "enabled": (there.enabled, wanted.enabled),
        "version": (
            found.version_name(there.version),
            found.version_name(wanted.version) if wanted.version else "the new one",
        ),
    }  # fmt: skip
    if found.experiment:
        shown["experiment"] = (there.experiment, wanted.experiment)
    return tuple((name, now, then) for name, (now, then) in shown.items() if now != then)


def _gone(name: str, there: list[Schedule], why: str) -> ScheduleWork:
    line = Line("remove", "schedule", name, why)
    return ScheduleWork(name, None, "", None, tuple(there), line)


def filled_in(wanted: Schedule, *, pipeline: str, version: str, experiment: str) -> Schedule:
    """What is to be there, now that all ids are known."""
    return replace(wanted, pipeline=pipeline, version=version, experiment=experiment)
