"""`cluster.train_job` of evertrain.yaml: how the nodes of one training are brought together.

What each node gets (cores, memory, accelerators, where it may run) is
`cluster.pods.train_distributed`. None of this changes a result, so none is part of a run's key.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from training_core.settings import Settings

NAME = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
_NAME_OR_NONE = r"^$|" + NAME


class TrainJobSettings(Settings):
    """Several nodes: a TrainJob of Kubeflow Trainer, or machines that people start by hand."""

    start: Literal["auto", "trainer", "hand"] = Field(
        "auto",
        description="Who starts the nodes: trainer: Kubeflow Trainer, also from outside the "
        "cluster; hand: a person, by the command that the step's log gives; auto: Trainer inside a "
        "cluster, and elsewhere the step refuses.",
    )
    runtime: str = Field(
        "torch-distributed",
        pattern=NAME,
        description="TrainingRuntime or ClusterTrainingRuntime of the torch framework; one with a "
        "podGroupPolicy schedules all nodes or none.",
    )
    namespace: str = Field(
        "", pattern=_NAME_OR_NONE, description="Of the TrainJob; empty: that of the step's pod."
    )
    service_account: str = Field(
        "", pattern=_NAME_OR_NONE, description="Of the nodes; empty: cluster.service_account."
    )
    queue: str = Field(
        "", pattern=_NAME_OR_NONE, description="Kueue's LocalQueue; empty: without Kueue."
    )
    priority: str = Field(
        "", pattern=_NAME_OR_NONE, description="Kueue's WorkloadPriorityClass; empty: the queue's."
    )
    min_nodes: int = Field(
        0,
        ge=0,
        description="Train on with so many while others are gone, and with all when they are "
        "back; 0: wait for all.",
    )
    port: int = Field(
        29500,
        ge=1024,
        le=65535,
        description="hand: on node 0, where nodes meet; Kubeflow Trainer has its own, 29500.",
    )
    interface: str = Field(
        "",
        pattern=r"^[A-Za-z0-9_.-]*$",
        description="Network interface of gloo and NCCL; empty: the one that leads to node 0.",
    )
    meeting: float = Field(
        900.0, gt=0, description="Seconds that nodes wait for one another before they give up."
    )
    last_call: float = Field(
        30.0,
        ge=1,
        description="min_nodes: seconds that those who are enough wait for more, at each start.",
    )
    restarts: int = Field(
        5,
        ge=0,
        description="Times in a row that nodes start their processes anew without a new "
        "checkpoint in between.",
    )
    pending: float = Field(
        1800.0,
        gt=0,
        description="Seconds that a node may wait for a machine, for quota or for its image; "
        "waiting in a Kueue queue does not count.",
    )
    poll: float = Field(5.0, gt=0, description="Seconds between two looks at the job.")
    stop_grace: int = Field(
        60, ge=5, description="Seconds from SIGTERM to SIGKILL that a node has to save in."
    )
    orphaned: float = Field(
        1800.0,
        ge=30,
        description="Seconds after which nodes that no step follows any more save and end.",
    )
