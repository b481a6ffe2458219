"""What a run is made of: code, configuration, packages; enough to run the same again."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from components.common.figures import Provenance
from components.common.layout import digest_of
from components.common.project import Project

_PACKAGES = (
    "evertrain", "torch", "numpy", "pandas", "pyarrow", "scikit-learn", "mlflow", "kfp",
    "great-expectations", "boto3", "pydantic",
)  # fmt: skip
_NO_RESULT = {"store", "tracking", "alerts", "cluster", "schedules", "watch", "lease"}
_INDIFFERENT = ("source", "cache", "memory")
_OURS = ("components", "pipelines", "training_core", "infra")
_NO_CODE = "infra/kubernetes"  # scripts of the manifests: no step runs them, no image has them


def provenance(project: Project) -> Provenance:
    """Collect it for a project as it is now."""
    # Where data, store and tracking lie changes no result (the data has a digest of its own), nor
    # do the limits of memory and cache, nor who is told of it, where it runs and what starts it.
    # A search and a refit do where the pipeline has them.
    settings = project.settings
    absent = {
        name
        for name, there in (("tune", settings.tune.in_pipeline), ("refit", settings.refit.enabled))
        if not there
    }
    config = settings.model_dump(mode="json", exclude=_NO_RESULT | absent)
    result = {**config, "data": {k: v for k, v in config["data"].items() if k not in _INDIFFERENT}}
    commit, dirty = _commit(project.folder)
    return Provenance(
        code_digest=code_digest(project),
        config_digest=digest_of(result),
        commit=commit,
        dirty=dirty,
        image_digest=os.environ.get("EVERTRAIN_IMAGE_DIGEST", ""),
        python=platform.python_version(),
        packages={name: _version(name) for name in _PACKAGES},
        config=config,
        overrides=list(project.overrides),
    )


def code_digest(project: Project) -> str:
    """Hash of our packages' sources, of the project's Python files and of its suite."""
    files = sources()
    own = [p for p in project.folder.rglob("*.py") if not _hidden(p.relative_to(project.folder))]
    suite = project.folder / project.settings.validation.suite
    files += [(f"project/{p.relative_to(project.folder).as_posix()}", p) for p in own]
    if suite.is_file():
        files.append(("project suite", suite))
    digest = hashlib.sha256()
    for name, path in sorted(files):
        digest.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\0".encode())
    return digest.hexdigest()


def sources() -> list[tuple[str, Path]]:
    """Return our packages' source files with their names, the same here and in every image."""
    root = Path(__file__).resolve().parents[2]
    return [
        (f"{package}/{path.relative_to(root / package).as_posix()}", path)
        for package in _OURS
        for path in (root / package).rglob("*.py")
        if not path.is_relative_to(root / _NO_CODE)
    ]


def commit_of(folder: Path) -> str:
    """The commit that a folder is at; empty: it is in no repository, or nobody can say."""
    return _commit(folder)[0]


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def _commit(folder: Path) -> tuple[str, bool | None]:
    """The commit of the folder's repository and whether it was dirty; ("", None): none."""
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        return commit, bool(_git(folder, "status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.SubprocessError):
        return os.environ.get("EVERTRAIN_COMMIT", ""), None


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words],  # noqa: S607 (whichever git the user has)
        check=True, capture_output=True, text=True, timeout=10,
    )  # fmt: skip
    return done.stdout.strip()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
