"""`evertrain doctor`: what a run needs, looked at before a run does."""

from __future__ import annotations

import platform
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from components.common.cluster_settings import ClusterSettings
from components.common.layout import home, project_store, tracking_uri
from components.common.project import Project, open_project
from components.common.sources import open_source
from infra.errors import OutsideError
from training_core.errors import ConfigurationError, EvertrainError

_NEEDED = ("torch", "kfp", "kfp-kubernetes", "mlflow", "great-expectations", "boto3", "pyarrow")
_FREE_GIB = 2
_OLDEST = 5  # seconds: what a store may say of the age of what was just written


@dataclass(frozen=True)
class Finding:
    """One thing looked at.

    Attributes:
        exit_code: 0: fine; else as on the design page.
    """

    name: str
    exit_code: int
    words: str


def examine(folder: Path | None) -> list[Finding]:
    """Look at the installation, and at a project if one is named."""
    findings = [_python(), *map(_package, _NEEDED)]
    if folder is None:
        return findings
    try:
        project = open_project(folder)
    except ConfigurationError as error:
        return [*findings, Finding("project", 2, str(error))]
    looks: list[tuple[str, Callable[[Project], str]]] = [
        ("task", _task), ("data", _data), ("object store", _store), ("MLflow", _tracking),
        ("alerts", _alerts), ("cluster", _cluster), ("disk", _disk),
    ]  # fmt: skip
    for name, look in looks:
        try:
            findings.append(Finding(name, 0, look(project)))
        except (EvertrainError, OutsideError) as error:
            findings.append(Finding(name, error.exit_code, str(error)))
    return findings


def _python() -> Finding:
    found = platform.python_version()
    return Finding("python", 0 if found.startswith("3.11.") else 2, found)


def _package(name: str) -> Finding:
    try:
        return Finding(name, 0, version(name))
    except PackageNotFoundError:
        return Finding(name, 2, "not installed\n\nhint: make venv")


def _task(project: Project) -> str:
    from components.common.runnable import runnable_task

    task = runnable_task(project)
    return f"{type(task).__name__}, {task.kind}, label {task.label!r}"


def _data(project: Project) -> str:
    source = open_source(project.data_source)
    count = sum(1 for place in source.places for _ in place.list())
    if not count:
        raise ConfigurationError(f"no object below {source.uri}", hint="bring data, or use --data")
    return f"{count} objects below {source.uri}"


def _store(project: Project) -> str:
    store = project_store(project)
    key = f"doctor/{uuid.uuid4().hex}"
    try:
        if not store.create(key, b"1") or store.create(key, b"2") or store.get(key) != b"1":
            raise OutsideError(
                f"{store.uri} does not honour create-if-absent: promotions would not be safe",
                hint="use a server with conditional writes (If-None-Match)",
            )
        seen = store.read(key)
        if (
            store.replace(key, b"3", version=seen.version) is None
            or store.replace(key, b"4", version=seen.version) is not None
            or store.get(key) != b"3"
        ):
            raise OutsideError(
                f"{store.uri} does not honour compare-and-swap: two runs could work at once",
                hint="use a server with conditional writes (If-Match)",
            )
        if seen.age > _OLDEST:
            raise OutsideError(
                f"{store.uri} says that what was just written is {seen.age:.0f} s old: a run would "
                "lose its lease at once",
                hint="the clocks of the store's servers differ; set them by one time server",
            )
    finally:
        store.delete(key)
    return f"{store.uri}, create-if-absent works, compare-and-swap too"


def _tracking(project: Project) -> str:
    from infra.registry import Registry

    uri = tracking_uri(project)
    settings = project.settings
    registry = Registry(uri=uri, experiment=settings.tracking.experiment or settings.name)
    return f"{uri}, {len(registry.versions(settings.name))} versions of {settings.name}"


def _alerts(project: Project) -> str:
    """Where they lead; that anybody answers there, only `evertrain alerts --test` can say."""
    from components.common.alert_channels import destination

    channels = project.settings.alerts.channels
    return "; ".join(f"{c.name or c.type}: {destination(c)}" for c in channels) or "none asked for"


def _cluster(project: Project) -> str:
    """What the settings say; whether Kubeflow takes it, `evertrain deploy --dry-run` finds out."""
    from pipelines.deploy.checks import check

    if project.settings.cluster == ClusterSettings():
        return "none asked for"
    cluster, warnings = project.settings.cluster, check(project, allow_tag=True)
    return "; ".join(["can be deployed", f"image {cluster.image}", *warnings])


def _disk(project: Project) -> str:
    folder = home(project)
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free / 2**30
    if free < _FREE_GIB:
        raise OutsideError(f"only {free:.1f} GiB free in {folder}", hint="free some space")
    return f"{free:.0f} GiB free in {folder}"
