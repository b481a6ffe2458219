"""Settings of regularisation."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from training_core.base_settings import Settings


class RegularisationSettings(Settings):
    """In training only: evaluation sees the examples, labels and loss as they are."""

    label_smoothing: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="Share of each label that is spread evenly over all classes; not for "
        "regression.",
    )
    mixup: float = Field(
        0.0,
        ge=0,
        description="Mix each example with another of its microbatch, by shares from "
        "Beta(mixup, mixup); 0: off. Numbers only.",
    )
    cutmix: float = Field(
        0.0,
        ge=0,
        description="Paste a box of another image, or cells of another row, by shares from "
        "Beta(cutmix, cutmix); 0: off. With mixup, each microbatch gets one of the two.",
    )
    mix_probability: float = Field(
        1.0, gt=0, le=1, description="mixup, cutmix: share of examples that are mixed."
    )
    gaussian_noise: float = Field(
        0.0,
        ge=0,
        description="Standard deviation of what is added to each number, after the preprocessor.",
    )
    swap_noise: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="Share of categories that are replaced by those of other rows of the "
        "microbatch, column by column.",
    )
    dropout: float | None = Field(
        None, ge=0, lt=1, description="Probability of all the network's dropout layers."
    )
    stochastic_depth: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="Probability of the network's last StochasticDepth layer; those before it "
        "drop less, in even steps.",
    )
    batch_norm: Literal["plain", "ghost", "synchronised"] = Field(
        "plain",
        description="Rows over which BatchNorm takes means: plain: those of a microbatch; ghost: "
        "`ghost_rows` of them; synchronised: those of all processes.",
    )
    ghost_rows: int = Field(32, ge=2, description="batch_norm: ghost: rows of a ghost batch.")

    @property
    def mixes(self) -> bool:
        """Whether examples are mixed."""
        return bool(self.mixup or self.cutmix)

    @property
    def changes_examples(self) -> bool:
        """Whether examples are changed at all."""
        return bool(self.mixes or self.gaussian_noise or self.swap_noise)

    @model_validator(mode="after")
    def _mixes_something(self) -> Self:
        if self.mix_probability < 1 and not self.mixes:
            raise ValueError("regularisation.mix_probability is set, but neither mixup nor cutmix")
        return self
