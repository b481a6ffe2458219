"""What a step in a container gets to see of this machine: folders, variables, the network."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from components.common.holding import PLACE, STARTED_BY
from components.common.layout import home, project_store, tracking_uri
from components.common.project import Project
from components.common.provenance import commit_of
from infra.engine import Mount
from infra.errors import OutsideError
from infra.store import ObjectStore
from training_core.errors import ConfigurationError

USER = "10001:10001"  # of the image

_ALWAYS = (
    "EVERTRAIN_STORE", "EVERTRAIN_STOP_FILE", "MLFLOW_TRACKING_URI", "OMP_NUM_THREADS", PLACE,
    STARTED_BY,
)  # fmt: skip
# What servers are reached with; without a network nobody needs to know it.
_SERVERS = ("AWS_", "MLFLOW_")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
_FILES = (
    "AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE",
    "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
    "MLFLOW_TRACKING_SERVER_CERT_PATH", "MLFLOW_TRACKING_CLIENT_CERT_PATH",
)  # fmt: skip
# A container has these of its own.
_TAKEN = (Path("/"), Path("/tmp"), Path("/app"), Path("/venv"))  # noqa: S108


def user_of_steps() -> str:
    """The caller's own number, so that what steps write is the caller's; root's steps are not root.

    Returns:
        `user:group`.
    """
    return USER if os.getuid() == 0 else f"{os.getuid()}:{os.getgid()}"


def servers(project: Project) -> list[str]:
    """What a run of this project reaches over the network, in words; empty: nothing."""
    sources = project.data_source
    uris = [sources] if isinstance(sources, str) else sources
    found = [f"the data ({uri})" for uri in uris if _is_remote(uri)]
    store, tracking = project_store(project).uri, tracking_uri(project)
    if _is_remote(store):
        found.append(f"the object store ({store})")
    if _is_remote(tracking):
        found.append("MLflow")  # its URI may hold a password
    alerts = project.settings.alerts.channels
    return found + [f"the alert channel {c.name or c.type}" for c in alerts if c.type != "log"]


def mounts(project: Project, store: ObjectStore) -> tuple[Mount, ...]:
    """What a step reads and writes: the project, its data, the home folder; files that it is given.

    Raises:
        ConfigurationError: One is not there, or cannot be read by the container's user.
    """
    found: dict[Path, bool] = {project.folder: False}
    sources = project.data_source
    for uri in [sources] if isinstance(sources, str) else sources:
        if not _is_remote(uri):
            found[_path(uri)] = False
    if servers(project):
        for name in _FILES:
            if os.environ.get(name):
                found[Path(os.environ[name]).absolute()] = False
    if os.environ.get("EVERTRAIN_STOP_FILE"):
        found[Path(os.environ["EVERTRAIN_STOP_FILE"]).absolute().parent] = False
    for folder in _written(project, store):
        folder.mkdir(parents=True, exist_ok=True)
        found[folder] = True
    for path in found:
        _refuse_useless(path)
    return tuple(Mount(path, writable) for path, writable in sorted(found.items()))


def environment(project: Project, *, run: str, network: bool) -> dict[str, str]:
    """The variables of a step: which run it belongs to, and what it reaches servers with."""
    found = {name: os.environ[name] for name in _ALWAYS if name in os.environ}
    if network:
        wanted = [*_PROXIES, *_FILES]
        for channel in project.settings.alerts.channels:
            wanted += channel.variables()
        found |= {
            name: value
            for name, value in os.environ.items()
            if name in wanted or name.startswith(_SERVERS)
        }
    return found | {
        "EVERTRAIN_RUN_ID": run,
        "EVERTRAIN_HOME": str(home(project)),
        "EVERTRAIN_COMMIT": commit_of(project.folder),
    }


def hand_over(project: Project, store: ObjectStore) -> None:
    """Give what this process, as root, wrote into the run's folders to the steps' user."""
    user, group = map(int, USER.split(":"))
    for folder in _written(project, store):
        for path, folders, files in os.walk(folder):
            for name in ("", *folders, *files):
                each = os.path.join(path, name) if name else path
                if os.lstat(each).st_uid != user:
                    os.chown(each, user, group, follow_symlinks=False)


def _written(project: Project, store: ObjectStore) -> Iterator[Path]:
    """Folders that steps write to, none inside another."""
    top = home(project)
    yield top
    for uri in (store.uri, tracking_uri(project)):
        if not _is_remote(uri):
            path = _path(uri)
            folder = path.parent if uri.startswith("sqlite:") else path
            if not folder.is_relative_to(top):
                yield folder


def _is_remote(uri: str) -> bool:
    scheme = urlsplit(uri).scheme if "://" in uri else ""
    return scheme not in ("", "file", "sqlite")


def _path(uri: str) -> Path:
    """The path of a local URI: `file://` and `sqlite:///` have one, and a plain one is one."""
    if uri.startswith("sqlite:"):
        return Path(unquote(urlsplit(uri).path.removeprefix("/")) or "/").absolute()
    return Path(urlsplit(uri).path if "://" in uri else uri).absolute()


def _refuse_useless(path: Path) -> None:
    """Say now what a step would fail at: a path that is not there, is taken, or is root's alone."""
    if not path.exists():
        raise ConfigurationError(
            f"{path} is not there, and the steps' containers need it",
            hint="evertrain doctor PROJECT says what a run needs",
        )
    if path in _TAKEN:
        raise ConfigurationError(
            f"{path} cannot be given to a container, which has one of its own",
            hint="put what steps need from there into a folder of its own",
        )
    needed = 0o005 if path.is_dir() else 0o004
    known = path.stat()
    if os.getuid() == 0 and known.st_uid != 10001 and known.st_mode & needed != needed:
        raise OutsideError(
            f"steps run as user {USER.split(':')[0]}, which may not read {path} (mode "
            f"{known.st_mode & 0o777:o})",
            hint=f"chmod -R o+rX {path}; or run evertrain as the user who owns it",
        )
