"""The compiled pipeline, and the name that its content gives it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from components.common.project import Project
from pipelines.compiling import compile_pipeline
from pipelines.deploy.checks import store_of
from pipelines.placing import placing
from training_core.errors import ConfigurationError


@dataclass(frozen=True)
class Package:
    """What is uploaded.

    Attributes:
        file: KFP's IR YAML.
        digest: Hash of its content; the same settings give the same on every machine.
        image: That the steps run in.
        project: Folder of the project inside the image.
        store: Object store.
    """

    file: Path
    digest: str
    image: str
    project: str
    store: str


def build_package(project: Project, folder: Path) -> Package:
    """Compile a project's pipeline for the cluster.

    Args:
        project: Checked (`pipelines.deploy.checks`).
        folder: Where the file goes.

    Raises:
        ConfigurationError: kfp does not take what `cluster` asks for.
    """
    cluster, file = project.settings.cluster, folder / "pipeline.yaml"
    inside = cluster.project or f"/app/{project.folder.name}"
    store = store_of(project)
    try:
        compile_pipeline(
            file,
            parameters={"project": inside, "store": store},
            place=placing(project.settings, pinned=True),
            tuned=project.settings.tune.in_pipeline,
            refitted=project.settings.refit.enabled,
        )
    except (ValueError, TypeError) as error:
        raise ConfigurationError(
            f"the pipeline cannot be compiled with these settings: {error}",
            hint="look at cluster in evertrain.yaml",
        ) from error
    return Package(file, _digest(file), cluster.image, inside, store)


def _digest(file: Path) -> str:
    """Hash of what runs: neither of comments at the head, nor of kfp's own version."""
    lines = file.read_text().splitlines()
    kept = [line for line in lines if not line.startswith(("#", "sdkVersion:"))]
    return hashlib.sha256("\n".join(kept).encode()).hexdigest()
