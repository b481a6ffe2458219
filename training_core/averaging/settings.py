"""Settings of averaged weights."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from training_core.base_settings import Settings


class AveragingSettings(Settings):
    """An average of the weights: it is evaluated, selected and packaged; the live ones train on."""

    kind: Literal["none", "ema", "swa"] = Field(
        "none",
        description="ema: the newest weights count most, from the first step on; swa: the plain "
        "mean of weights from the end of training. One more copy of the weights in memory.",
    )
    decay: float = Field(
        0.999,
        gt=0,
        lt=1,
        description="ema: what an older step counts for, by step; 0.999 looks 1,000 steps back.",
    )
    warmup: bool = Field(
        True,
        description="ema: look back over a ninth of the steps so far, until decay is reached: the "
        "first weights, which know nothing yet, are soon forgotten.",
    )
    start: float = Field(
        0.75, gt=0, lt=1, description="swa: share of all steps after which averaging begins."
    )
    every: int = Field(
        0, ge=0, description="swa: steps between weights that are averaged; 0: an epoch."
    )
    rate: Literal["constant", "cyclic", "schedule"] = Field(
        "constant",
        description="swa: the learning rate from its start on: constant: `high` of the peak; "
        "cyclic: from `high` to `low` between weights that are averaged; schedule: as it is.",
    )
    high: float = Field(0.5, gt=0, description="swa: rate, as a share of optimiser.lr.")
    low: float = Field(0.05, gt=0, description="swa, cyclic: lowest rate, a share as well.")
    statistics_rows: int = Field(
        4096,
        ge=2,
        description="Rows of the train split on which BatchNorm's statistics are collected anew "
        "for averaged weights, where the network has any.",
    )

    @model_validator(mode="after")
    def _falls(self) -> Self:
        if self.rate == "cyclic" and self.low > self.high:
            raise ValueError(f"averaging.low ({self.low}) is above averaging.high ({self.high})")
        return self
