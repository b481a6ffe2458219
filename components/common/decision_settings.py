"""The settings of the decision: what is chosen, what it takes to become champion, who is asked."""

from __future__ import annotations

from typing import Any, Literal, get_args

from pydantic import Field, field_validator

from training_core.settings import Settings

Baseline = Literal["prior", "input_independent", "rule", "table", "linear", "trees"]
BASELINES: tuple[Baseline, ...] = get_args(Baseline)
Metric = Literal[
    "log_loss", "brier", "error", "accuracy", "f1", "precision", "recall", "auc",
    "average_precision", "calibration_error",
    "absolute_error", "squared_error", "rmse", "r2", "quantile_loss_10", "quantile_loss_90",
    "perplexity",
]  # fmt: skip


Rule = Literal["flattest", "earliest", "latest", "best"]


class SelectionSettings(Settings):
    """Which of a training's checkpoints is taken."""

    rule: Rule = Field(
        "best",
        description="Which candidate is taken: the best on the validation split; or, among those "
        "that cannot be told from it, the one whose neighbours are good as well (flattest), the "
        "earliest, or the latest. Short validation splits tell few apart: on 14 days of flights "
        "the earliest of ten lost 0.0105 of log loss on the holdout.",
    )
    average: int = Field(
        3,
        ge=0,
        description="The mean of the weights of this many best checkpoints, two or more, is one "
        "more candidate; 0: no.",
    )


class DecisionSettings(Settings):
    """What it takes to become champion."""

    metric: Metric = Field(
        "log_loss", description="What challenger and champion are compared by; one of the task's."
    )
    retraining_noise: float | None = Field(
        None,
        ge=0,
        description="Standard deviation of the metric's difference between two trainings that "
        "differ by seed alone. Not said: it is measured, with replicas.",
    )
    noise_replicas: int = Field(
        3, ge=2, description="Trainings with other seeds that measure the noise, in each run."
    )
    noise_share: float = Field(
        0.5,
        gt=0,
        le=1,
        description="Share of the train split that a replica is trained on. Fewer rows cost less "
        "and show more noise than there is: on flights 0.0071 of a quarter, 0.0030 of half and "
        "0.0018 of all rows.",
    )
    margin: float = Field(
        0.0, ge=0, description="How much worse than the champion is still accepted."
    )
    confidence: float = Field(0.95, gt=0.5, lt=1, description="Of every interval.")
    resamples: int = Field(2000, ge=200, description="Bootstrap draws.")
    cluster: str = Field(
        "day",
        description="What is drawn: `day` (needs data.time_column), `row`, or a column whose rows "
        "belong together, such as a customer.",
    )
    floors: dict[Metric, float] = Field(
        default_factory=dict,
        description="By metric, what may just be promoted: the largest value, or the smallest "
        "where higher is better.",
    )
    minimum_auc: float = Field(
        0.5, ge=0.5, le=1, description="Smallest AUC that may be promoted; of binary tasks."
    )
    must_beat: list[Baseline] = Field(
        ["prior", "input_independent"],
        description="Baselines that must be beaten, the whole interval above 0.",
    )
    slices: list[str] = Field(
        default_factory=list,
        description="Columns whose values (or quarters, of numbers) are judged one by one.",
    )
    search_slices: bool = Field(
        True, description="Search all columns for slices where the challenger is weak."
    )
    slice_margin: float = Field(
        0.05,
        ge=0,
        description="How much worse than the champion a slice may be, as a share of the champion's "
        "score. A slice that is shown to be worse than that holds the challenger back.",
    )
    maximum_calibration_error: float | None = Field(
        None, gt=0, description="Largest expected calibration error; not said: it is no gate."
    )
    maximum_size_mb: float | None = Field(
        None, gt=0, description="Largest package, in MB; not said: it is no gate."
    )
    maximum_latency_ms: float | None = Field(
        None, gt=0, description="Largest median time of one row, in ms; not said: it is no gate."
    )
    holdout_uses: float = Field(
        10.0,
        ge=1,
        description="How often the same holdout rows may be asked for a decision; after that only "
        "rows that were asked less often count.",
    )
    approval: bool = Field(
        False, description="A person approves what the verdict would promote: evertrain approve."
    )

    @field_validator("must_beat", mode="before")
    @classmethod
    def _can_be_paired(cls, names: Any) -> Any:
        if not isinstance(names, list):
            return names
        if "human" in names:
            raise ValueError(
                "the human score has no predictions row by row, so no interval can be paired with "
                "it; write its value under decision.floors (or decision.minimum_auc) instead"
            )
        return ["linear" if name == "logistic" else name for name in names]
