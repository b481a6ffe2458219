"""Settings of training, as data. No torch here: the command line reads them in milliseconds."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Settings(BaseModel):
    """Base of every settings class: unknown keys are refused, values cannot change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class OptimiserSettings(Settings):
    """AdamW; norms and biases get no weight decay."""

    lr: float = Field(1e-3, gt=0, description="Peak learning rate.")
    weight_decay: float = Field(0.01, ge=0, description="Decoupled weight decay of matrices.")
    betas: tuple[float, float] = Field((0.9, 0.999), description="Adam's two decay rates.")
    clip_norm: float = Field(1.0, gt=0, description="Largest gradient norm; larger is scaled down.")


class ScheduleSettings(Settings):
    """The learning rate as a pure function of the step."""

    shape: Literal["constant", "linear", "cosine"] = Field(
        "cosine", description="How the rate goes from its peak to `final` by the last step."
    )
    warmup: float = Field(0.05, ge=0, lt=1, description="Share of all steps spent rising from 0.")
    final: float = Field(0.0, ge=0, le=1, description="Last rate, as a share of the peak.")


class CheckpointSettings(Settings):
    """Which checkpoints are kept: the union of the last ones and the best ones."""

    keep_last: int = Field(1, ge=1, description="Newest checkpoints that are kept.")
    keep_best: int = Field(3, ge=1, description="Checkpoints kept by validation loss.")


class TrainingSettings(Settings):
    """How the network is trained."""

    epochs: float = Field(3.0, gt=0, description="Passes over the train split.")
    batch_size: int = Field(
        1024, ge=1, description="Examples a step, over all processes and microbatches."
    )
    accumulation: int = Field(1, ge=1, description="Microbatches a step, on each process.")
    processes: int = Field(1, ge=1, description="Processes started by torchrun (DDP when > 1).")
    threads: int = Field(0, ge=0, description="CPU threads a process; 0: cores / processes.")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="Where to train.")
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field(
        "auto", description="auto: bf16 on a GPU that has it, else fp32."
    )
    seed: int = Field(0, ge=0, description="Initialisation, order of samples and dropout.")
    evaluate_every: int = Field(
        0, ge=0, description="Steps between evaluations and checkpoints; 0: ten a run."
    )
    log_every: int = Field(20, ge=1, description="Steps between log lines and metrics.")
    max_skipped: int = Field(
        20, ge=0, description="Non-finite steps that may be skipped before training fails."
    )
    optimiser: OptimiserSettings = OptimiserSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    checkpoints: CheckpointSettings = CheckpointSettings()


class CheckSettings(Settings):
    """Sanity checks of the training code, run before the long training."""

    rows: int = Field(20_000, ge=256, description="Rows of the train split that checks may use.")
    init_tolerance: float = Field(
        0.25, gt=0, description="Loss at initialisation: allowed share above the expected loss."
    )
    overfit_rows: int = Field(32, ge=2, description="Size of the one batch to overfit.")
    overfit_steps: int = Field(400, ge=10, description="Steps allowed for overfitting it.")
    overfit_loss: float = Field(0.05, gt=0, description="Loss that counts as overfitted.")
    input_steps: int = Field(300, ge=10, description="Steps of the two runs compared for learning.")
