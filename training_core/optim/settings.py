"""Settings of the optimiser and of the learning rate."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, Self

from pydantic import Field, model_validator

from training_core.base_settings import Settings


class OptimiserSettings(Settings):
    """How gradients become updates; norms and biases get no weight decay."""

    name: Literal["adamw", "adam", "sgd", "nadam", "adafactor", "muon"] = Field(
        "adamw", description="sgd has Nesterov momentum; muon trains matrices, adamw the rest."
    )
    lr: float = Field(1e-3, gt=0, description="Peak learning rate.")
    weight_decay: float = Field(0.01, ge=0, description="Weight decay of matrices.")
    betas: tuple[float, float] = Field((0.9, 0.999), description="Adam's two decay rates.")
    eps: float = Field(1e-8, gt=0, description="Added to the denominator of adam, adamw, nadam.")
    momentum: float = Field(0.9, ge=0, lt=1, description="Momentum of sgd and muon.")
    clip_norm: float = Field(
        1.0, ge=0, description="Largest gradient norm; larger is scaled down; 0: no limit."
    )
    clip_percentile: float = Field(
        0, ge=0, lt=100, description="Also clip at this running percentile of norms; 0: do not."
    )
    clip_history: int = Field(
        256, ge=2, description="Newest norms that clip_percentile is taken of."
    )

    @model_validator(mode="after")
    def _decays(self) -> Self:
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas must be at least 0 and below 1, not {list(self.betas)}")
        return self


class ScheduleSettings(Settings):
    """The learning rate as a pure function of the step (plateau excepted)."""

    shape: Literal[
        "constant", "linear", "cosine", "step", "one_cycle", "triangular", "triangular2",
        "inverse_sqrt", "plateau",
    ] = Field(
        "cosine", description="How the rate goes from its peak to `final` by the last step."
    )  # fmt: skip
    warmup: float = Field(
        0.05,
        ge=0,
        lt=1,
        description="Share of all steps spent rising from 0 (one_cycle: see `rising`).",
    )
    final: float = Field(0.0, ge=0, le=1, description="Last (or lowest) rate, share of the peak.")
    milestones: tuple[float, ...] = Field(
        (0.5, 0.75), description="step: shares of all steps at which the rate falls."
    )
    milestone_factor: float = Field(
        0.1, gt=0, lt=1, description="step: the rate is multiplied with it at each milestone."
    )
    rising: float = Field(
        0.3, gt=0, lt=1, description="one_cycle: share of all steps until the peak; its warm-up."
    )
    lowest_momentum: float = Field(
        0.85, ge=0, lt=1, description="one_cycle: momentum (Adam's first beta) at the peak."
    )
    cycles: int = Field(4, ge=1, description="triangular, triangular2: cycles of the whole run.")
    plateau_patience: int = Field(
        3, ge=1, description="plateau: evaluations without a lower loss before the rate falls."
    )
    plateau_factor: float = Field(
        0.5, gt=0, lt=1, description="plateau: the rate is multiplied with it each time."
    )

    @model_validator(mode="after")
    def _milestones_rise(self) -> Self:
        bounds = (0.0, *self.milestones, 1.0)
        if not all(a < b for a, b in pairwise(bounds)):
            raise ValueError(f"milestones must rise, between 0 and 1, not {list(self.milestones)}")
        return self
