"""Who starts the nodes of one training: Kubeflow Trainer, or people by hand.

To add another, write a class with the members of `Starter` and choose it in `starter_for`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from components.common.project import Project
from components.train_distributed.shared_job import SharedJob
from training_core.errors import ConfigurationError

MODULE = "components.train_distributed.node"


@dataclass(frozen=True)
class Look:
    """How the nodes are.

    Attributes:
        words: One line.
        over: They will not go on by themselves.
        waiting: Some of them have nowhere to run, though nothing holds them back.
        pulling: An image cannot be pulled.
        hopeless: Something is wrong that does not mend itself.
        hint: What to do.
    """

    words: str
    over: bool = False
    waiting: bool = False
    pulling: bool = False
    hopeless: bool = False
    hint: str = ""


class Starter(Protocol):
    """Starts nodes, knows how they are, and ends them."""

    def identity(self, number: int) -> str:
        """Return what tells an attempt with these settings from all others."""

    def start(self, shared: SharedJob) -> None:
        """Have nodes started, once, however often it is called for an attempt."""

    def look(self) -> Look:
        """Return how they are."""

    def last_words(self) -> list[str]:
        """Return what nodes printed last, where it is known."""

    def stop(self, number: int, *, patience: float, linger: float = 0.0) -> bool:
        """End the nodes of an attempt in good order; say whether they were gone in time.

        Args:
            number: Of the attempt.
            patience: Seconds to wait for their end.
            linger: Seconds in which they may end by themselves before.
        """

    def close(self) -> None:
        """Follow them no longer."""


class ByHand:
    """People start the nodes, by a command that the log gives."""

    def __init__(self, project: Project, run_key: str) -> None:
        self._run_key, self._settings = run_key, project.settings

    def identity(self, number: int) -> str:
        """See `Starter`."""
        return f"{self._run_key[:12]}-{number}"

    def start(self, shared: SharedJob) -> None:
        """See `Starter`."""
        nodes = self._settings.training.nodes
        command = f"{sys.executable} -m {MODULE} {shared.store.uri} {shared.key}"
        print(
            f"start {nodes} nodes, on each of {nodes} machines with this code, this project's "
            f"folder and the way to {shared.store.uri}:\n  {command} --node NUMBER --host ADDRESS\n"
            f"NUMBER is 0 to {nodes - 1}, ADDRESS that of node 0; start one that was lost again.",
            file=sys.stderr, flush=True,
        )  # fmt: skip

    def look(self) -> Look:
        """See `Starter`."""
        return Look("nodes that were started by hand are waited for")

    def last_words(self) -> list[str]:
        """See `Starter`."""
        return []

    def stop(self, number: int, *, patience: float, linger: float = 0.0) -> bool:
        """Nodes find in the store that it is over."""
        return True

    def close(self) -> None:
        """See `Starter`."""


def starter_for(project: Project, run_key: str, run: str, *, say: Callable[[str], None]) -> Starter:
    """Return who starts the nodes, as `cluster.train_job.start` says.

    Raises:
        ConfigurationError: Nobody does, here.
        OutsideError: The cluster cannot be spoken with.
    """
    refuse_nodes_of_nobody(project)
    wanted = project.settings.cluster.train_job
    if wanted.start == "hand":
        return ByHand(project, run_key)
    # The SDK takes two seconds to import.
    from components.train_distributed.by_trainer import ByTrainer
    from infra.trainer.api import TrainerApi
    from infra.trainer.jobs import TrainJobs

    jobs = TrainJobs(TrainerApi(namespace=wanted.namespace))
    return ByTrainer(project, run_key, run, jobs=jobs, say=say)


def refuse_nodes_of_nobody(project: Project) -> None:
    """Refuse to train on nodes that nobody would start.

    Raises:
        ConfigurationError: With what to do.
    """
    nodes, start = project.settings.training.nodes, project.settings.cluster.train_job.start
    if nodes > 1 and start == "auto" and not os.environ.get("KUBERNETES_SERVICE_HOST"):
        raise ConfigurationError(
            f"training.nodes is {nodes}, and this is no pod of a cluster",
            hint="train on this machine alone: --set training.nodes=1; or say who starts the "
            "nodes: cluster.train_job.start=trainer (by a kubeconfig) or hand",
        )
