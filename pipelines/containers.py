"""`evertrain run --runner docker`: the compiled pipeline, each step in a container of its own.

kfp's local runner does the rest, as with processes; only how one task is run is ours
(`infra.engine` says why). A container sees what its step needs and nothing else: the project and
the data, to read; the home folder, to write; this machine's network only where a server is named.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import TextIOBase
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from components.common.layout import home
from components.common.project import Project
from components.common.watchdog import STDIN, VARIABLE
from infra.engine import Confinement, Ended, Engine
from infra.errors import OutsideError
from infra.store import ObjectStore
from pipelines.container_access import (
    USER,
    environment,
    hand_over,
    mounts,
    servers,
    user_of_steps,
)
from pipelines.container_ends import settle

if TYPE_CHECKING:
    from kfp.local.status import Status

_LABEL = "evertrain.home"


class Containers:
    """Runs each step in a container of one image.

    Args:
        project: Opened with the run's data and overrides.
        image: Name, digest or id of an image that is on this machine.
        memory: Limit of each container, as `4g`; empty: none.

    Raises:
        OutsideError: No engine answers, or it has no such image.
    """

    def __init__(self, project: Project, *, image: str, memory: str = "") -> None:
        self._project = project
        self._engine = Engine()
        self._engine.refuse_mapped_users()
        # By id from here on: whatever becomes of the name, all steps run what the first one ran.
        self.image = self._engine.image_id(image)
        self.servers = servers(project)
        self._home = f"{_LABEL}={home(project)}"
        self._confinement = Confinement(
            image=self.image,
            user=user_of_steps(),
            network="host" if self.servers else "none",
            memory=memory,
            labels={_LABEL: str(home(project))},
        )

    def said(self) -> str:
        """What containers may reach, and why, in a sentence."""
        if not self.servers:
            return "each step in a container without network"
        return f"each step in a container on this machine's network, for {', '.join(self.servers)}"

    @contextlib.contextmanager
    def at_work(self, *, run: str, store: ObjectStore, log: TextIOBase) -> Iterator[Any]:
        """Yield the runner to start `kfp.local` with; tasks that it runs are steps of this run.

        Whatever an earlier run of this project left running is ended first: it holds no lock.
        """
        from kfp import local
        from kfp.local import docker_task_handler

        self._engine.remove_all(self._home)
        confinement = replace(
            self._confinement,
            mounts=mounts(self._project, store),
            environment=environment(self._project, run=run, network=bool(self.servers))
            | {VARIABLE: STDIN},
        )
        working = _Working(self._engine, confinement, self._project, store, run, log)

        def handler(image: str, full_command: list[str], **kfp: Any) -> _Task:
            return _Task(working, full_command, kfp.get("env_vars") or {})

        # kfp finds its handler by the exact class of the runner, so there is no other way in.
        theirs = docker_task_handler.DockerTaskHandler
        docker_task_handler.DockerTaskHandler = handler
        try:
            yield local.DockerRunner()
        finally:
            docker_task_handler.DockerTaskHandler = theirs
            self._engine.close()


@dataclass(frozen=True)
class _Working:
    """What every task of a run is run with."""

    engine: Engine
    confinement: Confinement
    project: Project
    store: ObjectStore
    run: str
    log: TextIOBase


@dataclass(frozen=True)
class _Task:
    """One task, as `kfp.local` asks for it."""

    working: _Working
    command: list[str]
    env: dict[str, str]

    def run(self) -> Status:
        """Run it to its end; success is what the step itself calls success."""
        from kfp.local.status import Status

        w = self.working
        step, run_key = _named(self.command)
        if w.confinement.user == USER and os.getuid() == 0:
            hand_over(w.project, w.store)
        try:
            ended = w.engine.run(
                self.command,
                replace(w.confinement, environment={**self.env, **w.confinement.environment}),
                name=f"evertrain-{w.run}-{step}".replace("_", "-"),
                out=_printing,
                last_words=_writing(w.log),
            )
        except OutsideError as error:
            ended = Ended(-1, error=str(error))
        done = settle(w.store, run=w.run, step=step, run_key=run_key, ended=ended)
        return Status.SUCCESS if done else Status.FAILURE


def _named(command: Sequence[str]) -> tuple[str, str]:
    """The step of a task, and the run key that it was given, from its command."""
    said = dict(pairwise(command))
    given = json.loads(said["--executor_input"]).get("inputs", {}).get("parameterValues", {})
    return said["--function_to_execute"], str(given.get("run_key", ""))


def _printing(text: str) -> None:
    print(text, end="")


def _writing(log: TextIOBase) -> Callable[[str], None]:
    def write(text: str) -> None:
        log.write(text)
        log.flush()

    return write
