"""The whole of a deploy: look, plan, ask, do, run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from components.common.project import Project
from infra.kubeflow import Access, Kubeflow, Version
from pipelines.deploy.apply import apply, tidy
from pipelines.deploy.checks import check
from pipelines.deploy.package import Package, build_package
from pipelines.deploy.plan import Plan, make_plan
from pipelines.deploy.state import Found, look


@dataclass(frozen=True)
class Prepared:
    """Everything that is known before anything is changed."""

    project: Project
    kubeflow: Kubeflow
    package: Package | None
    found: Found
    plan: Plan
    warnings: tuple[str, ...]


def connect(project: Project, *, host: str = "", namespace: str = "") -> Kubeflow:
    """Reach the Kubeflow of a project.

    Args:
        project: Whose `cluster` says where it is, and how to get in.
        host, namespace: Instead of those of the settings.
    """
    cluster, way = project.settings.cluster, project.settings.cluster.access
    return Kubeflow.connect(
        host=host or cluster.host,
        namespace=namespace or cluster.namespace,
        access=Access(
            token_env=way.token_env, cookies_env=way.cookies_env, ca=way.ca, proxy=way.proxy
        ),
        patience=way.patience,
        timeout=(min(way.timeout, 10.0), way.timeout),
    )


def prepare(
    project: Project,
    folder: Path,
    *,
    host: str = "",
    namespace: str = "",
    allow_tag: bool = False,
    remove: bool = False,
) -> Prepared:
    """Check a project, compile it, look at Kubeflow and make a plan; nothing is changed.

    Args:
        project: What is to be there.
        folder: Where the compiled pipeline goes.
        host, namespace: Instead of those of the settings.
        allow_tag: Take an image that is not named by its digest.
        remove: Plan to take the project's schedules away instead.

    Raises:
        ConfigurationError: The project cannot be deployed like this.
        OutsideError: Kubeflow is not to be reached, or does not let one in.
    """
    warnings: list[str] = []
    package = None
    if not remove:
        warnings = check(project, allow_tag=allow_tag)
        package = build_package(project, folder)
    kubeflow = connect(project, host=host, namespace=namespace)
    found = _look(project, kubeflow)
    plan = make_plan(project, package, found)
    return Prepared(project, kubeflow, package, found, plan, tuple(warnings))


def carry_out(prepared: Prepared, say: Callable[[str], None]) -> Version | None:
    """Do what was planned; return the version that is the newest then."""
    version = apply(
        prepared.plan, prepared.project, prepared.package,
        kubeflow=prepared.kubeflow, found=prepared.found, say=say,
    )  # fmt: skip
    if prepared.plan.to_do and prepared.package is not None:
        after = make_plan(
            prepared.project, prepared.package, _look(prepared.project, prepared.kubeflow)
        )
        tidy(after, kubeflow=prepared.kubeflow, say=say)
    return version


def _look(project: Project, kubeflow: Kubeflow) -> Found:
    settings, cluster = project.settings, project.settings.cluster
    return look(
        kubeflow,
        project=settings.name,
        pipeline=cluster.pipeline or settings.name,
        experiment=cluster.experiment or settings.name,
    )
