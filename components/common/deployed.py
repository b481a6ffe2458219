"""Whether the image holds the settings that were deployed.

A step reads `evertrain.yaml` in its image. Who changes the file and deploys, but forgets to build
the image anew, would see nothing of the change, and no word of it either. So deploy tells the pods
what the file was, section by section, and the first step compares.
"""

from __future__ import annotations

import os

from components.common.layout import digest_of
from components.common.project import Project, open_project
from components.common.settings import ProjectSettings
from training_core.errors import ConfigurationError

VARIABLE = "EVERTRAIN_SETTINGS"
# Read when one deploys, or given to the run as a parameter: the image's own are not used.
_NOT_FROM_THE_IMAGE = {"cluster", "schedules", "watch", "store"}
# But for the pods of a training's nodes, which its step makes. The image's digest cannot be in it.
_NOT_OF_NODES = {"image", "project", "host", "namespace", "access", "timezone", "experiment",
                 "pipeline"}  # fmt: skip


def fingerprint(settings: ProjectSettings) -> str:
    """Return a short hash of each section, as `data=1f2e3d4c training=…`."""
    sections = settings.model_dump(mode="json", exclude=_NOT_FROM_THE_IMAGE)
    if settings.training.nodes > 1:
        sections["cluster"] = settings.cluster.model_dump(mode="json", exclude=_NOT_OF_NODES)
    return " ".join(f"{name}={digest_of(value)[:8]}" for name, value in sorted(sections.items()))


def check_deployed(project: Project) -> None:
    """Compare the settings in the image with those that were deployed, if they were.

    Raises:
        ConfigurationError: They differ; says in which sections.
    """
    deployed = os.environ.get(VARIABLE, "")
    if not deployed:
        return
    here = fingerprint(open_project(project.folder).settings)  # without the run's own overrides
    if here == deployed:
        return
    mine, theirs = (dict(each.split("=", 1) for each in one.split()) for one in (here, deployed))
    names = sorted(mine.keys() | theirs.keys())
    different = [name for name in names if mine.get(name) != theirs.get(name)]
    raise ConfigurationError(
        f"evertrain.yaml in the image ({project.folder}) is not the one that was deployed: it "
        f"differs in {', '.join(different)}",
        hint="build and push the image again, write its digest to cluster.image, and deploy",
    )
