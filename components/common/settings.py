"""The settings of a project: `evertrain.yaml`, as classes."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from components.common.alert_settings import AlertSettings
from components.common.cluster_settings import ClusterSettings, ScheduleSettings
from components.common.data_settings import DataSettings, SplitSettings, ValidationSettings
from components.common.decision_settings import BASELINES, DecisionSettings, SelectionSettings
from components.common.ensemble_settings import EnsembleSettings
from components.common.refit_settings import RefitSettings
from components.common.trigger_settings import LeaseSettings, WatchSettings
from components.common.tune_settings import TuneSettings
from training_core.settings import CheckSettings, Settings, TrainingSettings


class TaskReference(Settings):
    """Where the task's class is."""

    path: str = Field(
        pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$",
        description="`module:Class`, the module relative to the project's folder.",
    )
    options: dict[str, Any] = Field(default_factory=dict, description="Options of the task itself.")


class HumanScore(Settings):
    """How well people do, as somebody measured it once."""

    metric: Literal["log_loss", "brier", "error", "auc"] = Field(description="What was measured.")
    value: float = Field(allow_inf_nan=False, description="Its value.")
    by: str = Field(min_length=1, description="Who judged, and what: three dispatchers, 400 rows.")
    when: str = Field(min_length=1, description="When, in words or as a date.")

    @field_validator("when", mode="before")
    @classmethod
    def _words(cls, when: Any) -> Any:
        """YAML makes a date of 2013-05-01, and a number of 2013."""
        return str(when) if isinstance(when, date | int) else when


class BaselineSettings(Settings):
    """Simple models that the network has to beat; the task itself may bring a `rule`."""

    table: list[str] = Field(
        default_factory=list, description="Columns of a table of rates, smoothed; empty: no table."
    )
    table_smoothing: float = Field(100.0, ge=0, description="Rows of prior added to each cell.")
    linear: bool = Field(
        True,
        description="Logistic or ridge regression, by kind of task, on the network's inputs, "
        "categories one-hot. Once called `logistic`, which is still understood.",
    )
    trees: bool = Field(True, description="Gradient-boosted trees on the network's inputs.")
    trees_rounds: int = Field(100, ge=1, description="Trees one after another (for each class).")
    trees_lr: float = Field(0.1, gt=0, le=1, description="Share of each tree's answer added.")
    input_independent_steps: int = Field(
        200, ge=10, description="Steps of the network trained on features without information."
    )
    human: HumanScore | None = Field(
        None,
        description="A score of people, shown beside the others. It has no predictions row by row, "
        "so nothing can be paired with it; to demand it, write it under decision.floors.",
    )

    @model_validator(mode="before")
    @classmethod
    def _old_name(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "logistic" not in given:
            return given
        if "linear" in given:
            raise ValueError("`logistic` is the old name of `linear`: give one of them")
        return {"linear" if key == "logistic" else key: value for key, value in given.items()}


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
    select: SelectionSettings = SelectionSettings()
    ensemble: EnsembleSettings = EnsembleSettings()
    tune: TuneSettings = TuneSettings()
    decision: DecisionSettings = DecisionSettings()
    refit: RefitSettings = RefitSettings()
    tracking: TrackingSettings = TrackingSettings()
    alerts: AlertSettings = AlertSettings()
    cluster: ClusterSettings = ClusterSettings()
    schedules: tuple[ScheduleSettings, ...] = Field((), description="Kubeflow recurring runs.")
    watch: WatchSettings = WatchSettings()
    lease: LeaseSettings = LeaseSettings()
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
        names = [schedule.name for schedule in self.schedules]
        if len(set(names)) < len(names):
            raise ValueError("schedules: two have the same name")
        if self.split.by != "time" and self.split.holdout + self.split.validation >= 1:
            raise ValueError(
                f"split.by: {self.split.by} needs split.holdout + split.validation below 1"
            )
        self._shared_by_nodes()
        self._can_be_refitted()
        offered = self.offered_baselines
        absent = [name for name in self.decision.must_beat if name not in offered]
        if absent:
            raise ValueError(f"decision.must_beat names {absent}, but only {offered} are trained")
        return self

    def _can_be_refitted(self) -> None:
        """A refitted champion must be comparable one day, and its training the judged one's."""
        if not self.refit.enabled:
            return
        if self.split.by != "time":
            raise ValueError(
                f"refit.enabled needs split.by: time: by {self.split.by} the same rows are held "
                "out for ever, and no later model could be compared with one that has seen them"
            )
        if self.ensemble.of != "none":
            raise ValueError(
                f"refit.enabled does not go with ensemble.of: {self.ensemble.of}: it trains one "
                "model again, not the members of a mean"
            )
        if self.training.schedule.shape == "plateau":
            raise ValueError(
                "refit.enabled does not go with training.schedule.shape: plateau: its rates follow "
                "the validation loss, and nothing is held out from a refit"
            )

    def _shared_by_nodes(self) -> None:
        """Whatever number of nodes trains on has to be one that training can be shared by."""
        training, least = self.training, self.cluster.train_job.min_nodes
        if least > training.nodes:
            raise ValueError(
                f"cluster.train_job.min_nodes ({least}) is more than training.nodes "
                f"({training.nodes})"
            )
        for nodes in range(least or training.nodes, training.nodes):
            processes = nodes * training.processes
            if training.deterministic == "topology" and training.canonical_microbatches % processes:
                raise ValueError(
                    f"cluster.train_job.min_nodes lets {nodes} nodes train, and "
                    f"training.canonical_microbatches ({training.canonical_microbatches}) cannot "
                    f"be shared equally by their {processes} processes"
                )
            if training.parallel.strategy == "fsdp" and (
                processes == 1 or processes % training.parallel.replicas
            ):
                raise ValueError(
                    f"cluster.train_job.min_nodes lets {processes} processes train, which fsdp "
                    f"with training.parallel.replicas {training.parallel.replicas} cannot"
                )

    @property
    def offered_baselines(self) -> list[str]:
        """Names of the baselines that may be trained, in the order of `BASELINES`.

        Whether there is a rule the task knows.
        """
        asked = {
            "table": bool(self.baselines.table),
            "linear": self.baselines.linear,
            "trees": self.baselines.trees,
        }
        return [name for name in BASELINES if asked.get(name, True)]
