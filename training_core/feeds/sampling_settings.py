"""Settings of which examples are drawn, and how often."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from training_core.base_settings import Settings


class SamplingSettings(Settings):
    """How often each example is drawn in an epoch; without any of it, once.

    An epoch stays as long as the train split. Weights multiply each other.
    """

    class_balance: float = Field(
        0.0,
        ge=0,
        le=1,
        description="1: each class as often as any other; between: by its share to the power of "
        "1 - class_balance. Shifts what the network says is probable (docs/techniques.md).",
    )
    weight_column: str | None = Field(
        None, description="Column of the raw rows that says how often each is drawn."
    )
    half_life_days: float | None = Field(
        None, gt=0, description="A row that is so much older (data.time_column) is drawn half as "
        "often."
    )  # fmt: skip
    curriculum: Literal["none", "column", "length", "loss"] = Field(
        "none",
        description="Easy examples first: by difficulty_column; by length (tokens, or the length "
        "of what is in difficulty_column); by the loss at the last epoch's end.",
    )
    difficulty_column: str | None = Field(
        None, description="curriculum: column of the raw rows; larger is harder."
    )
    pacing: Literal["linear", "root", "step"] = Field(
        "linear",
        description="How the share of examples in use grows, epoch by epoch: evenly; fast, then "
        "slowly; or all at once at full_at.",
    )
    start_share: float = Field(
        0.3, gt=0, le=1, description="curriculum: share of the examples in the first epoch."
    )
    full_at: float = Field(
        0.5, gt=0, le=1, description="curriculum: share of training after which all are in use."
    )

    @property
    def active(self) -> bool:
        """Whether any example is drawn other than once an epoch."""
        return bool(
            self.class_balance
            or self.weight_column
            or self.half_life_days
            or self.curriculum != "none"
        )

    @model_validator(mode="after")
    def _has_its_column(self) -> Self:
        if self.curriculum == "column" and not self.difficulty_column:
            raise ValueError(
                "sampling.curriculum is column, and sampling.difficulty_column is empty"
            )
        if self.difficulty_column and self.curriculum not in ("column", "length"):
            raise ValueError(
                "sampling.difficulty_column is set, and sampling.curriculum is neither column nor "
                "length"
            )
        return self
