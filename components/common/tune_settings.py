"""`tune` of evertrain.yaml: which settings are searched, how long, and by which rules.

Part of a run's key only where the pipeline itself tunes: otherwise it changes no result.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from training_core.settings import Settings

Scalar = bool | int | float | str
Value = Scalar | list[Scalar]
Role = Literal["scientific", "nuisance", "fixed"]


class TunedParameter(Settings):
    """One setting: searched between two ends, among choices, or held where it is."""

    role: Role = Field(
        "nuisance",
        description="scientific: what you ask about; nuisance: has to be searched so that the "
        "scientific ones are compared fairly; fixed: stays as it is, and the analysis says so.",
    )
    low: float | None = Field(None, allow_inf_nan=False, description="Smallest value, included.")
    high: float | None = Field(None, allow_inf_nan=False, description="Largest value, included.")
    log: bool = Field(False, description="Searched by its logarithm.")
    step: float | None = Field(None, gt=0, description="Values lie so far apart, from low on.")
    choices: tuple[Value, ...] = Field((), description="The values, instead of two ends.")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        ends = [end for end in (self.low, self.high) if end is not None]
        if self.role == "fixed":
            if ends or self.choices:
                raise ValueError("what is fixed has no ends and no choices: its value is its own")
            return self
        if self.choices:
            if ends or self.log or self.step is not None:
                raise ValueError("give choices, or low and high, not both")
            if len(set(map(repr, self.choices))) < 2 or len(self.choices) != len(
                set(map(repr, self.choices))
            ):
                raise ValueError("choices are two or more, all different")
            return self
        if len(ends) < 2 or ends[0] >= ends[1]:
            raise ValueError("give low and high, low below high, or choices")
        if self.log and (ends[0] <= 0 or self.step is not None):
            raise ValueError("log needs low above 0, and no step")
        return self


class TuneSettings(Settings):
    """The search of `evertrain tune`; each trial trains, and is scored on the validation split."""

    in_pipeline: bool = Field(
        False,
        description="Put the step `tune` into the pipeline, before train_distributed, which then "
        "trains with what it found.",
    )
    parameters: dict[str, TunedParameter] = Field(
        default_factory=dict,
        description="By the setting's path, such as training.optimiser.lr. Empty: learning rate, "
        "weight decay and warm-up around their values, and the task's dropout if it has that.",
    )
    trials: int = Field(24, ge=1, description="Trials in all; the same search can be gone on with.")
    hours: float = Field(0.0, ge=0, description="No trial begins after so many hours; 0: no limit.")
    cost: float = Field(
        0.0, ge=0, description="No trial begins once this is spent, at price_per_hour; 0: no limit."
    )
    price_per_hour: float = Field(0.0, ge=0, description="Price of one process for an hour.")
    parallel: int = Field(1, ge=1, description="Trials at once, each a process of its own.")
    seed: int = Field(0, ge=0, lt=2**31, description="Of the points that are tried.")
    metric: str = Field(
        "loss",
        description="Of the validation split, at its best checkpoint: loss, by which "
        "select_checkpoint ranks, or a metric of the task.",
    )
    direction: Literal["minimise", "maximise"] = Field("minimise", description="Of the metric.")
    quasi_random: float = Field(
        0.5,
        ge=0,
        le=1,
        description="Share of the trials that are spread evenly over the space, which come first; "
        "the analysis is best with many of them.",
    )
    sequence: Literal["sobol", "halton"] = Field(
        "sobol", description="Of the points that are spread evenly; scrambled by the seed."
    )
    bayesian: Literal["tpe", "gp"] = Field("tpe", description="What proposes the later points.")
    pruning: Literal["none", "median", "halving"] = Field(
        "median",
        description="Which trials end early, compared with others after as many evaluations: "
        "median: worse than half of them; halving: not among the best quarter at a rung.",
    )
    spared: int = Field(
        5, ge=0, description="Evaluations that every trial has before it may end early."
    )
    unpruned: int = Field(5, ge=1, description="median: trials that have to be whole before.")
    repeats: int = Field(
        3,
        ge=2,
        description="Seeds by which the winner and the present settings are compared, and each "
        "changed setting by itself.",
    )
    keep: int = Field(0, ge=0, description="Trials, the best ones, whose checkpoints are kept.")

    @model_validator(mode="after")
    def _priced(self) -> Self:
        if self.cost and not self.price_per_hour:
            raise ValueError(
                f"tune.cost is {self.cost:g}, but nothing has a price: give tune.price_per_hour"
            )
        return self
