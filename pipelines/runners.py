"""Which runner a run's steps get: `evertrain run --runner`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from components.common.project import Project
from pipelines import show
from training_core.errors import ConfigurationError

if TYPE_CHECKING:
    from pipelines.local import StepRunner


class Runner(StrEnum):
    """What a step is on this machine."""

    PROCESS = "process"
    DOCKER = "docker"


RunnerOption = Annotated[
    Runner, typer.Option(help="What each step is: a process, or a Docker container.")
]
ImageOption = Annotated[
    str, typer.Option(metavar="IMAGE", help="Of the containers; default: EVERTRAIN_IMAGE.")
]


def chosen_runner(project: Project, runner: Runner, *, image: str) -> StepRunner:
    """Return the runner; say what containers may reach.

    Raises:
        ConfigurationError: An image is named, and no container is asked for.
        OutsideError: There is no Docker engine, or no such image.
    """
    if runner is Runner.PROCESS:
        if image:
            raise ConfigurationError(
                f"--image {image} is for steps in containers",
                hint="add --runner docker, or leave --image out",
            )
        from pipelines.local import Processes

        return Processes()
    from components.common.image import IMAGE
    from pipelines.containers import Containers

    containers = Containers(project, image=image or IMAGE)
    show.TALK.print(containers.said(), markup=False, soft_wrap=True)
    return containers
