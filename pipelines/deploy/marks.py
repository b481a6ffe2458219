"""How our own things in Kubeflow are told from others': a mark at the end of their description."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

from infra.kubeflow import Pipeline, Schedule, Version

_SCHEDULE = re.compile(r"\[evertrain project=(\S+) schedule=(\S+) spec=([0-9a-f]{12})\]$")
_PIPELINE = re.compile(r"\[evertrain project=(\S+) pipeline=(.+)\]$")
_VERSION = re.compile(r"\[evertrain digest=([0-9a-f]{64})\]$")


@dataclass(frozen=True)
class ScheduleMark:
    """What a schedule's mark says: whose it is, which, and what it was deployed as."""

    project: str
    schedule: str
    spec: str


def shown_name(project: str, schedule: str) -> str:
    """What a schedule of ours is called in Kubeflow."""
    return f"{project}-{schedule}"


def mark_schedule(words: str, *, project: str, schedule: str, spec: str) -> str:
    """Return the description of a schedule of ours."""
    return f"{words} [evertrain project={project} schedule={schedule} spec={spec}]"


def read_schedule(schedule: Schedule) -> ScheduleMark | None:
    """Return the mark of a schedule; None: it is not ours."""
    found = _SCHEDULE.search(schedule.description)
    return ScheduleMark(*found.groups()) if found else None


def mark_pipeline(project: str, name: str) -> str:
    """Return the description of a project's pipeline."""
    return f"Continuous training of {project} [evertrain project={project} pipeline={name}]"


def first_name(pipeline: Pipeline, project: str) -> str:
    """The name that a pipeline was made under, if it is this project's; empty: it is not."""
    found = _PIPELINE.search(pipeline.description)
    return found.group(2) if found and found.group(1) == project else ""


def mark_version(image: str, digest: str) -> str:
    """Return the description of a version."""
    return f"Image {image} [evertrain digest={digest}]"


def read_version(version: Version) -> str:
    """Return the digest of what is in a version; empty: it was not uploaded by deploy."""
    found = _VERSION.search(version.description)
    return found.group(1) if found else ""


def spec_of(schedule: Schedule) -> str:
    """Hash of what a schedule does, but for its version and whether it is enabled."""
    told = {
        "name": schedule.name, "cron": schedule.cron, "every": schedule.every,
        "parameters": schedule.parameters, "catch_up": schedule.catch_up,
        "max_concurrency": schedule.max_concurrency, "starts": schedule.starts,
        "ends": schedule.ends, "service_account": schedule.service_account,
        "experiment": schedule.experiment,
    }  # fmt: skip
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]
