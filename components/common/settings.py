"""The settings of a project: `evertrain.yaml`, as classes."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from components.common.data_settings import DataSettings, SplitSettings, ValidationSettings
from training_core.settings import CheckSettings, Settings, TrainingSettings


class TaskReference(Settings):
    """Where the task's class is."""

    path: str = Field(
        pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$",
        description="`module:Class`, the module relative to the project's folder.",
    )
    options: dict[str, Any] = Field(default_factory=dict, description="Options of the task itself.")


class BaselineSettings(Settings):
    """Simple models that the network has to beat."""

    table: list[str] = Field(
        default_factory=list, description="Columns of a table of rates, smoothed; empty: no table."
    )
    table_smoothing: float = Field(100.0, ge=0, description="Rows of prior added to each cell.")
    logistic: bool = Field(True, description="Logistic regression on one-hot features.")
    input_independent_steps: int = Field(
        200, ge=10, description="Steps of the network trained on features without information."
    )


Baseline = Literal["prior", "input_independent", "table", "logistic"]
BASELINES: tuple[Baseline, ...] = ("prior", "input_independent", "table", "logistic")


class DecisionSettings(Settings):
    """What it takes to become champion."""

    metric: Literal["log_loss", "brier", "error"] = Field(
        "log_loss", description="Compared row by row; lower is better."
    )
    retraining_noise: float = Field(
        ge=0,
        description="Standard deviation of the metric's difference between two trainings that "
        "differ by seed alone. Measure it; a difference smaller than this means nothing.",
    )
    margin: float = Field(
        0.0, ge=0, description="How much worse than the champion is still accepted."
    )
    confidence: float = Field(0.95, gt=0.5, lt=1, description="Of every interval.")
    resamples: int = Field(2000, ge=200, description="Bootstrap draws.")
    cluster: Literal["day", "row"] = Field(
        "day", description="What is drawn: days (needs data.time_column) or rows."
    )
    floors: dict[Literal["log_loss", "brier", "error"], float] = Field(
        default_factory=dict, description="Largest value of a metric that may be promoted."
    )
    minimum_auc: float = Field(0.5, ge=0.5, le=1, description="Smallest AUC that may be promoted.")
    must_beat: list[Baseline] = Field(
        ["prior", "input_independent"],
        description="Baselines that must be beaten, the whole interval above 0.",
    )


class TrackingSettings(Settings):
    """Where metrics and models are registered."""

    uri: str = Field("", description="MLflow; empty: MLFLOW_TRACKING_URI, else SQLite at home.")
    experiment: str = Field("", description="Empty: the project's name.")


class ProjectSettings(Settings):
    """`evertrain.yaml`."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", description="Also the model's name.")
    task: TaskReference
    data: DataSettings
    validation: ValidationSettings = ValidationSettings()
    split: SplitSettings = SplitSettings()
    checks: CheckSettings = CheckSettings()
    baselines: BaselineSettings = BaselineSettings()
    training: TrainingSettings = TrainingSettings()
    decision: DecisionSettings
    tracking: TrackingSettings = TrackingSettings()
    store: str = Field(
        "", description="Object store; empty: EVERTRAIN_STORE, else the home folder."
    )

    @model_validator(mode="after")
    def _consistent(self) -> ProjectSettings:
        needs_time = [
            key
            for key, wants in (
                ("split.by: time", self.split.by == "time"),
                ("decision.cluster: day", self.decision.cluster == "day"),
            )
            if wants
        ]
        if needs_time and self.data.time_column is None:
            raise ValueError(f"{' and '.join(needs_time)} need data.time_column")
        if self.split.by != "time" and self.split.holdout + self.split.validation >= 1:
            raise ValueError(
                f"split.by: {self.split.by} needs split.holdout + split.validation below 1"
            )
        offered = self.offered_baselines
        absent = [name for name in self.decision.must_beat if name not in offered]
        if absent:
            raise ValueError(f"decision.must_beat names {absent}, but only {offered} are trained")
        return self

    @property
    def offered_baselines(self) -> list[str]:
        """Names of the baselines that will be trained, in the order of `BASELINES`."""
        absent = set()
        if not self.baselines.table:
            absent.add("table")
        if not self.baselines.logistic:
            absent.add("logistic")
        return [name for name in BASELINES if name not in absent]
