"""Settings of checkpoints."""

from __future__ import annotations

from pydantic import Field

from training_core.base_settings import Settings


class CheckpointSettings(Settings):
    """When checkpoints are made, and the union of those that are kept."""

    every: int = Field(0, ge=0, description="Steps between checkpoints; 0: at each evaluation.")
    keep_last: int = Field(1, ge=1, description="Newest checkpoints that are kept.")
    keep_best: int = Field(3, ge=0, description="Checkpoints kept by `metric`.")
    metric: str = Field("loss", description="Validation metric that ranks them; lower is better.")
    keep_every: int = Field(0, ge=0, description="Also keep each multiple of this step; 0: none.")
    keep_exponential: bool = Field(
        False, description="Also keep the oldest one of each doubling of the age."
    )
    asynchronous: bool = Field(True, description="Write while training goes on.")
