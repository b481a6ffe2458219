"""Settings of the refit: training once more on all rows, after the verdict."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from training_core.base_settings import Settings


class RefitSettings(Settings):
    """What is to be promoted is trained again on all rows, the holdout's included.

    Nobody can measure such a model on rows that it has not seen: docs/refit.md.
    """

    enabled: bool = Field(
        False,
        description="Put the step `refit_model` into the pipeline, between evaluate_model and "
        "promote_model; it needs split.by: time.",
    )
    rule: Literal["passes", "updates"] = Field(
        "passes",
        description="How far to train: passes: over its rows as often as the judged model over its "
        "fewer ones, so in more steps; updates: in as many steps.",
    )
    shift: float = Field(
        0.08,
        gt=0,
        description="Largest mean difference from the judged model's predictions, 0 to 1 (total "
        "variation; of numbers, in standard deviations of the target). Above it the judged model "
        "is promoted.",
    )
    slice_shift: float = Field(
        0.16, gt=0, description="The same within each slice of decision.slices."
    )
