"""Settings of training, as data. No torch here: the command line reads them in milliseconds.

Each part's own settings lie beside it (`optim/settings.py`, `checkpoints/settings.py`, …).
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from training_core.averaging.settings import AveragingSettings
from training_core.base_settings import Settings as Settings  # the name others import
from training_core.checkpoints.settings import CheckpointSettings as CheckpointSettings
from training_core.distillation.settings import DistillationSettings
from training_core.feeds.sampling_settings import SamplingSettings
from training_core.optim.settings import OptimiserSettings as OptimiserSettings
from training_core.optim.settings import ScheduleSettings as ScheduleSettings
from training_core.parallel.settings import ParallelSettings
from training_core.regularisation.settings import RegularisationSettings
from training_core.stopping.settings import RecoverySettings, StoppingSettings
from training_core.transfer.settings import StartSettings


class TrainingSettings(Settings):
    """How the network is trained."""

    epochs: float = Field(3.0, gt=0, description="Passes over the train split.")
    batch_size: int = Field(
        1024, ge=1, description="Examples a step, over all processes and microbatches."
    )
    accumulation: int = Field(1, ge=1, description="Microbatches a step, on each process.")
    processes: int = Field(
        1, ge=1, description="Processes started by torchrun, on each node where there are several."
    )
    nodes: int = Field(
        1, ge=1, description="Machines; more than one train together as a TrainJob (docs/nodes.md)."
    )
    threads: int = Field(
        0,
        ge=0,
        description="CPU threads a process; 0: cores / processes; one with topology.",
    )
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="Where to train.")
    precision: Literal["auto", "fp32", "tf32", "bf16", "fp16"] = Field(
        "auto", description="auto: bf16 on a GPU that has it, else fp32. Weights stay fp32."
    )
    deterministic: Literal["off", "ranks", "topology"] = Field(
        "ranks",
        description="Which runs give the same weights, bit for bit: ranks: a resumed run on as "
        "many processes; topology: on 1, 2, 4, … processes, and when their number changes; off: "
        "none on a GPU (fastest there; on a CPU the same as ranks).",
    )
    canonical_microbatches: int = Field(
        4,
        ge=1,
        description="deterministic: topology: microbatches that each step is cut into, whatever "
        "the number of processes, which must divide it.",
    )
    compile: bool = Field(False, description="torch.compile the model; costs seconds at the start.")
    activation_checkpointing: bool = Field(
        False, description="Recompute the activations of repeated blocks in backward: less memory."
    )
    channels_last: bool = Field(
        False, description="Lay 4-D weights out as NHWC; convolutions hand that layout on."
    )
    data: Literal["memory", "disk"] = Field(
        "memory", description="disk: memory-mapped blocks, for splits larger than memory."
    )
    seed: int = Field(
        0, ge=0, lt=2**32, description="Initialisation, order of samples and dropout."
    )
    evaluate_every: int = Field(
        0, ge=0, description="Steps between evaluations and checkpoints; 0: ten a run."
    )
    evaluation_rows: int = Field(
        0, ge=0, description="Rows of a fixed sample to evaluate on; 0: all of validation."
    )
    log_every: int = Field(20, ge=1, description="Steps between log lines and metrics.")
    bias_from_prior: bool = Field(
        False,
        description="Set the output layer's bias so that the untrained network predicts what the "
        "labels are on average: spares the first steps of a rare class.",
    )
    max_skipped: int = Field(
        20, ge=0, description="Non-finite steps that may be skipped before recovery begins."
    )
    start: StartSettings = StartSettings()
    optimiser: OptimiserSettings = OptimiserSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    parallel: ParallelSettings = ParallelSettings()
    checkpoints: CheckpointSettings = CheckpointSettings()
    stopping: StoppingSettings = StoppingSettings()
    recovery: RecoverySettings = RecoverySettings()
    sampling: SamplingSettings = SamplingSettings()
    regularisation: RegularisationSettings = RegularisationSettings()
    averaging: AveragingSettings = AveragingSettings()
    distillation: DistillationSettings = DistillationSettings()

    @property
    def world_size(self) -> int:
        """Processes on all nodes."""
        return self.nodes * self.processes

    @property
    def cold(self) -> Self:
        """The same training from a plain start and without a teacher: what replicas train."""
        plain = {"start": StartSettings(), "distillation": DistillationSettings()}
        return self.model_copy(update=plain)

    @property
    def fixed_threads(self) -> int:
        """CPU threads that training must have, whatever the machine; 0: as many as there are.

        How many there are decides in which order some processors add up a matrix product (seen on
        an AMD EPYC), and cores divided by processes change with the processes.
        """
        return self.threads or int(self.deterministic == "topology")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.distillation.teacher != "none" and self.regularisation.mixes:
            raise ValueError(
                "training.distillation goes without mixup and cutmix: the teacher is asked once "
                "for each row, and knows nothing of what two rows give when they are mixed"
            )
        if self.parallel.static_graph and self.accumulation > 1:
            raise ValueError(
                "training.parallel.static_graph needs training.accumulation 1: torch's DDP cannot "
                "learn the graph from a step that begins without communication"
            )
        if self.deterministic == "topology":
            if self.regularisation.batch_norm == "synchronised":
                raise ValueError(
                    "deterministic: topology computes each microbatch as if no other were there: "
                    "not with training.regularisation.batch_norm: synchronised"
                )
            if self.canonical_microbatches % self.world_size:
                nodes = f" on each of training.nodes ({self.nodes})" if self.nodes > 1 else ""
                raise ValueError(
                    f"training.canonical_microbatches ({self.canonical_microbatches}) cannot be "
                    f"shared equally by training.processes ({self.processes}){nodes}"
                )
            if self.accumulation != 1:
                raise ValueError(
                    "training.accumulation must be 1 with deterministic: topology, which cuts "
                    "each step into canonical_microbatches"
                )
            if self.parallel.strategy == "fsdp":
                raise ValueError("deterministic: topology needs whole gradients: not fsdp")
        return self


class CheckSettings(Settings):
    """Sanity checks of the training code, run before the long training."""

    rows: int = Field(20_000, ge=256, description="Rows of each split that checks may use.")
    seconds: float = Field(
        90.0,
        gt=0,
        description="Checks that train are skipped, and say so, after as long; half of "
        "it is theirs.",
    )
    levels: dict[str, Literal["fail", "warn", "off"]] = Field(
        default_factory=dict,
        description="What a failed check does, by its name: stop the run (fail, as usual), warn, "
        "or off: it is not made.",
    )
    init_tolerance: float = Field(
        0.25, gt=0, description="Loss at initialisation: allowed share above the expected loss."
    )
    overfit_rows: int = Field(32, ge=2, description="Size of the one batch to overfit.")
    overfit_steps: int = Field(400, ge=10, description="Steps allowed for overfitting it.")
    overfit_loss: float = Field(0.05, gt=0, description="Loss that counts as overfitted.")
    input_steps: int = Field(300, ge=10, description="Steps of each short training.")
    hours: float = Field(
        0.0, ge=0, description="Warn where the planned training would take longer; 0: no limit."
    )
