"""Settings of stopping and of recovery from divergence."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from training_core.base_settings import Settings


class StoppingSettings(Settings):
    """Rules that end a training before its epochs are done; 0 turns a rule off."""

    max_steps: int = Field(0, ge=0, description="Optimiser steps.")
    patience: int = Field(0, ge=0, description="Evaluations without a better validation loss.")
    min_delta: float = Field(0.0, ge=0, description="How much better counts as better.")
    plateau: int = Field(0, ge=0, description="Log intervals without a better training loss.")
    gradient_norm: float = Field(
        0.0, ge=0, description="Mean gradient norm of a log interval below which training ends."
    )
    seconds: float = Field(0.0, ge=0, description="Wall time, over all restarts.")
    budget: float = Field(0.0, ge=0, description="Cost, in the currency of price_per_hour.")
    price_per_hour: float = Field(0.0, ge=0, description="Price of one process for an hour.")

    @model_validator(mode="after")
    def _priced(self) -> Self:
        if self.budget and not self.price_per_hour:
            raise ValueError(
                f"training.stopping.budget is {self.budget:g}, but nothing has a price: give "
                "training.stopping.price_per_hour, the price of one process for an hour"
            )
        return self


class RecoverySettings(Settings):
    """What happens when the loss explodes or too many steps are not finite."""

    attempts: int = Field(
        2, ge=0, description="Rollbacks to the last good checkpoint before training fails."
    )
    lr_factor: float = Field(
        0.5, gt=0, lt=1, description="The learning rate is multiplied with it at each rollback."
    )
    spike: float = Field(
        5.0, ge=0, description="Loss of a log interval / median of recent ones; 0: no limit."
    )
