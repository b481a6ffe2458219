"""Settings of ensembles."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from training_core.settings import Settings


class EnsembleSettings(Settings):
    """Whose mean of predictions is the run's candidate (docs/ensembles.md)."""

    of: Literal["none", "seeds", "champions"] = Field(
        "none",
        description="none: the trained model alone; seeds: models that this run trains from "
        "different seeds, one after another; champions: the model that this run trains, and the "
        "last champions.",
    )
    members: int = Field(
        3,
        ge=2,
        le=20,
        description="Models that are averaged, the one of this run included; predicting costs as "
        "many times as much, and with seeds so does training.",
    )
