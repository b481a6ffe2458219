"""Settings of distillation."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from training_core.base_settings import Settings


class DistillationSettings(Settings):
    """Learn from a teacher's predictions as well as from the labels (docs/ensembles.md)."""

    teacher: Literal["none", "champion", "file"] = Field(
        "none",
        description="champion: the model in production, an ensemble too (none while there is "
        "none); file: this network with the weights of `file`.",
    )
    file: str = Field(
        "",
        description="A safetensors file with all weights of this network: a path, seen from the "
        "project, or store://KEY. Its sha256 is part of the run's key.",
    )
    weight: float = Field(
        0.5,
        gt=0,
        le=1,
        description="What the teacher's predictions count for; the labels count for the rest.",
    )
    temperature: float = Field(
        2.0,
        gt=0,
        description="Both models' logits are divided by it, and this part of the loss is "
        "multiplied with its square (Hinton et al. 2015, arXiv:1503.02531). Not for regression.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.teacher == "file") != bool(self.file):
            raise ValueError("distillation.teacher: file and distillation.file belong together")
        return self
