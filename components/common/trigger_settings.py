"""`lease` and `watch` of evertrain.yaml: one run at a time, and what starts one.

Neither changes a result, so neither is part of a run's key.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from training_core.settings import Settings

Trigger = Literal["data", "drift", "decay", "schedule"]


class LeaseSettings(Settings):
    """One run of a project at a time, whatever started it."""

    seconds: float = Field(
        120.0,
        ge=5,
        description="The lease of a run whose step died is free within so many seconds: a step "
        "gives a sign of life every third of that, from a thread of its own.",
    )
    between: float = Field(
        900.0,
        ge=5,
        description="Seconds that the lease lives after a step ended: the next step's pod has to "
        "be scheduled and its image pulled by then.",
    )
    busy: Literal["skip", "queue"] = Field(
        "skip",
        description="What a run does that finds another under way: skip ends it at once, green; "
        "queue waits.",
    )
    patience: float = Field(
        3600.0, ge=0, description="queue: seconds until it gives up waiting, and ends green."
    )

    @model_validator(mode="after")
    def _order(self) -> Self:
        if self.between < self.seconds:
            # a step that ends beside another one must not shorten what that one counts on
            raise ValueError(
                f"between ({self.between:g}) is shorter than seconds ({self.seconds:g})"
            )
        return self


class WatchSettings(Settings):
    """What `evertrain watch` looks for, how often, and what starts a run."""

    when: tuple[Trigger, ...] = Field(
        ("data",),
        min_length=1,
        description="data: new objects at data.source; drift: what came moved further than history "
        "explains; decay: the champion's metric on new labels fell; schedule: one of `schedules`, "
        "for where Kubeflow's own do not serve.",
    )
    queue: str = Field(
        "",
        description="URL of an SQS queue that the bucket notifies; empty: data.source is listed.",
    )
    poll: float = Field(60.0, gt=0, description="Seconds between listings.")
    quiet: float = Field(
        30.0, ge=0, description="Seconds without a new object before a run starts: uploads end."
    )
    longest: float = Field(
        900.0, ge=0, description="Seconds after which a run starts although objects still come."
    )
    minimum: int = Field(1, ge=1, description="New objects that it takes.")
    look_every: float = Field(
        3600.0, ge=60, description="Seconds between listings of everything: lost events are found."
    )
    advise_every: float = Field(
        3600.0, gt=0, description="drift, decay: seconds between looks at data and champion."
    )
    retries: int = Field(
        3,
        ge=0,
        le=20,
        description="How often a run is started again that the world outside failed.",
    )
    retry_after: float = Field(
        60.0, ge=0, description="Seconds until the first of them; twice as many before each other."
    )

    @model_validator(mode="after")
    def _order(self) -> Self:
        if self.longest and self.longest < self.quiet:
            raise ValueError(f"longest ({self.longest:g}) is shorter than quiet ({self.quiet:g})")
        return self
