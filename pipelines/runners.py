"""Which runner a run's steps get: `evertrain run --runner`."""

from __future__ import annotations

import re
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

MemoryOption = Annotated[
    str, typer.Option(metavar="SIZE", help="Most memory of each container: 8g; default: no limit.")
]


def chosen_runner(project: Project, runner: Runner, *, image: str, memory: str) -> StepRunner:
    """Return the runner; say what containers may reach.

    Raises:
        ConfigurationError: What containers are is said, and none is asked for; or memory is no
            size.
        OutsideError: There is no Docker engine, or no such image.
    """
    if runner is Runner.PROCESS:
        for option, value in (("--image", image), ("--memory", memory)):
            if value:
                raise ConfigurationError(
                    f"{option} {value} is for steps in containers",
                    hint=f"add --runner docker, or leave {option} out",
                )
        from pipelines.local import Processes

        return Processes()
    if memory and not re.fullmatch(r"[1-9][0-9]*[mg]", memory):
        raise ConfigurationError(
            f"--memory {memory!r} is no size", hint="a number and m or g: --memory 8g"
        )
    from components.common.image import IMAGE
    from pipelines.containers import Containers

    containers = Containers(project, image=image or IMAGE, memory=memory)
    show.TALK.print(containers.said(), markup=False, soft_wrap=True)
    return containers
