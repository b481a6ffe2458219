"""What would fail in the cluster, found before anything goes there; all of it at once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from components.common.project import Project, open_project
from pipelines.cron import parse_cron
from training_core.errors import ConfigurationError

_SECRET_NAME = re.compile(r"SECRET|PASSWORD|PASSWD|TOKEN|PRIVATE_KEY|CREDENTIAL")
_LOCAL_TRACKING = ("sqlite:", "file:", "")


@dataclass(frozen=True)
class Problem:
    """Something that keeps a project from being deployed, and what to do."""

    what: str
    hint: str


def check(project: Project, *, allow_tag: bool) -> list[str]:
    """Look at a project's settings; return what is worth a warning.

    Args:
        project: As it is on this machine.
        allow_tag: Take an image that is not named by its digest.

    Raises:
        ConfigurationError: With every problem that there is.
    """
    problems = [
        *_image(project, allow_tag=allow_tag),
        *_places(project),
        *_secrets(project),
        *_schedules(project),
    ]
    if problems:
        raise _together(project, problems)
    return list(_warnings(project))


def store_of(project: Project) -> str:
    """The object store of the deployed pipeline."""
    return (
        project.settings.store
        or project.settings.cluster.environment.get("EVERTRAIN_STORE", "")
        or os.environ.get("EVERTRAIN_STORE", "")
    )


def _together(project: Project, problems: list[Problem]) -> ConfigurationError:
    name = project.settings.name
    if len(problems) == 1:
        return ConfigurationError(
            f"{name} cannot be deployed: {problems[0].what}", hint=problems[0].hint
        )
    said = "\n".join(f"  {n}. {problem.what}" for n, problem in enumerate(problems, 1))
    hints = "\n".join(f"  {n}. {problem.hint}" for n, problem in enumerate(problems, 1))
    return ConfigurationError(
        f"{name} cannot be deployed, for {len(problems)} reasons:\n{said}", hint=f"\n{hints}"
    )


def _image(project: Project, *, allow_tag: bool) -> Iterator[Problem]:
    cluster = project.settings.cluster
    if not cluster.image:
        yield Problem(
            "cluster.image is empty: no step would have an image to run in",
            "push the image, and write what docker push says: "
            "cluster.image: registry/evertrain@sha256:…",
        )
    elif not cluster.by_digest and not allow_tag:
        yield Problem(
            f"cluster.image {cluster.image!r} names no digest: what runs tomorrow may not be what "
            "was tested today, and runs of different code would have the same key",
            "docker inspect --format '{{index .RepoDigests 0}}' IMAGE says it; or --allow-tag, to "
            "try something out",
        )


def _places(project: Project) -> Iterator[Problem]:
    settings, cluster = project.settings, project.settings.cluster
    store = store_of(project)
    if not store.startswith("s3://"):
        yield Problem(
            f"the store is {store or 'a folder of this machine'!r}, which no pod would share",
            "store: s3://bucket/prefix in evertrain.yaml",
        )
    source = project.data_source
    sources = [source] if isinstance(source, str) else source
    folders = [uri for uri in sources if "://" not in uri]
    if folders:
        yield Problem(
            f"data.source {folders[0]!r} is a folder of this machine, which no pod sees",
            "put the data into an object store: data.source: s3://bucket/prefix",
        )
    tracking = settings.tracking.uri or cluster.environment.get("MLFLOW_TRACKING_URI", "")
    if "MLFLOW_TRACKING_URI" not in cluster.secrets and tracking.startswith(_LOCAL_TRACKING[:2]):
        yield Problem(
            f"MLflow is at {tracking!r}, in the pod itself: all it learns would go with the pod",
            "tracking.uri: http://… in evertrain.yaml, that of a server",
        )
    elif "MLFLOW_TRACKING_URI" not in cluster.secrets and not tracking:
        here = os.environ.get("MLFLOW_TRACKING_URI", "")
        yield Problem(
            "no MLflow server is named: metrics and models would go with the pod"
            + (f" (MLFLOW_TRACKING_URI is {here!r} here, but not in the pods)" if here else ""),
            "tracking.uri in evertrain.yaml, or cluster.environment.MLFLOW_TRACKING_URI",
        )


def _secrets(project: Project) -> Iterator[Problem]:
    settings, cluster = project.settings, project.settings.cluster
    needed = {name for channel in settings.alerts.channels for name in channel.variables()}
    missing = sorted(needed - set(cluster.secrets) - set(cluster.environment))
    if missing:
        yield Problem(
            f"alerts need {', '.join(missing)}, which no pod would have",
            f"name the secret that holds it: cluster.secrets.{missing[0]}: {{secret: NAME}}",
        )
    for name, value in sorted(cluster.environment.items()):
        if _SECRET_NAME.search(name) or _has_password(value):
            yield Problem(
                f"cluster.environment.{name} looks like a secret, and would stand in the pipeline "
                "for everybody to read",
                f"kubectl create secret generic NAME --from-literal={name}=…, and "
                f"cluster.secrets.{name}: {{secret: NAME}}",
            )


def _has_password(value: str) -> bool:
    try:
        return bool("://" in value and urlsplit(value).password)
    except ValueError:
        return False


def _schedules(project: Project) -> Iterator[Problem]:
    for schedule in project.settings.schedules:
        try:
            parse_cron(schedule.cron, zone=project.settings.cluster.timezone)
            open_project(project.folder, overrides=list(schedule.settings))
        except ConfigurationError as error:
            yield Problem(f"schedules, {schedule.name!r}: {error.what}", error.hint)


def _warnings(project: Project) -> Iterator[str]:
    cluster = project.settings.cluster
    if not cluster.by_digest:
        yield f"the image {cluster.image!r} is named by a tag: what it means may change"
    given = {*cluster.environment, *cluster.secrets}
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        if os.environ.get(name) and name not in given:
            yield (
                f"{name} is {os.environ[name]!r} here, and not in the pods: they would ask AWS "
                f"itself (cluster.environment.{name})"
            )
    if not project.settings.store and not cluster.environment.get("EVERTRAIN_STORE"):
        yield f"the store is {store_of(project)!r} from EVERTRAIN_STORE here, not from the file"
