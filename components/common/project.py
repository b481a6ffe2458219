"""A project: `evertrain.yaml`, read and checked, and the task that it names."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import yaml
from pydantic import BaseModel, Field, ValidationError, model_validator

from training_core.errors import ConfigurationError
from training_core.settings import CheckSettings, Settings, TrainingSettings

if TYPE_CHECKING:
    from training_core.task import Task

FILE_NAME = "evertrain.yaml"


class TaskReference(Settings):
    """Where the task's class is."""

    path: str = Field(
        pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$",
        description="`module:Class`, the module relative to the project's folder.",
    )
    options: dict[str, Any] = Field(default_factory=dict, description="Options of the task itself.")


class DataSettings(Settings):
    """Where the data is and which columns say what a row is."""

    source: str = Field(description="Folder (relative to the project) or s3://bucket/prefix.")
    pattern: str = Field("*.parquet", description="Which objects below the source are data.")
    newest: int = Field(
        0, ge=0, description="Rolling window: only the last N objects by name; 0: all of them."
    )
    row_key: list[str] = Field(min_length=1, description="Columns that together name one row.")
    time_column: str | None = Field(None, description="When a row came to be; UTC.")


class RowRule(Settings):
    """A rule that single rows may break; those that do are put aside."""

    name: str = Field(pattern=r"^[a-z0-9_]+$", description="Shown with every row put aside.")
    column: str = Field(description="The column that is looked at; nulls pass.")
    minimum: float | None = Field(None, description="Smallest value that is let through.")
    maximum: float | None = Field(None, description="Largest value that is let through.")


class ValidationSettings(Settings):
    """What a snapshot must fulfil."""

    suite: str = Field("expectations.json", description="Great Expectations suite (JSON).")
    row_rules: list[RowRule] = Field(default_factory=list, description="Rules for single rows.")
    quarantine_budget: float = Field(
        0.001, ge=0, le=1, description="Share of rows that may be put aside before the run stops."
    )
    leak_auc: float = Field(
        0.95, gt=0.5, le=1, description="A feature that alone ranks labels this well is a leak."
    )


class SplitSettings(Settings):
    """How rows are divided into train, validation and holdout."""

    by: Literal["time", "hash"] = Field("time", description="time needs data.time_column.")
    holdout: float = Field(14, gt=0, description="time: days; hash: share of rows.")
    validation: float = Field(14, gt=0, description="time: days; hash: share of rows.")


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
        description="Baselines that must be beaten beyond doubt.",
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
        if self.split.by == "hash" and self.split.holdout + self.split.validation >= 1:
            raise ValueError("split.by: hash needs split.holdout + split.validation below 1")
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


class Project:
    """A project's folder, its settings, and its task.

    Attributes:
        folder: Absolute path.
        settings: `evertrain.yaml` with the overrides applied.
    """

    def __init__(self, folder: Path, settings: ProjectSettings) -> None:
        self.folder = folder
        self.settings = settings

    @property
    def data_source(self) -> str:
        """The data's URI, a relative folder made absolute."""
        source = self.settings.data.source
        return source if "://" in source else str((self.folder / source).resolve())

    def task(self) -> Task:
        """Import and build the task.

        Raises:
            ConfigurationError: Module, class or options are wrong.
        """
        from training_core.task import Task

        reference = self.settings.task
        module_name, _, class_name = reference.path.partition(":")
        if sys.path[0] != str(self.folder):
            sys.path.insert(0, str(self.folder))
        _forget_other_project(module_name.partition(".")[0], self.folder)
        where = f"{self.folder / FILE_NAME}: task.path {reference.path!r}"
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name != module_name.partition(".")[0] and error.name != module_name:
                raise
            raise ConfigurationError(
                f"{where}: there is no module {module_name!r} in {self.folder}",
                hint=f"create {module_name.replace('.', '/')}.py there, or correct task.path",
            ) from error
        found = getattr(module, class_name, None)
        if not (isinstance(found, type) and issubclass(found, Task)):
            known = [
                name
                for name, value in vars(module).items()
                if isinstance(value, type)
                and issubclass(value, Task)
                and value.__module__ == module.__name__
            ]
            raise ConfigurationError(
                f"{where}: {module.__file__} has no task class {class_name!r}",
                hint=f"its tasks are: {', '.join(known) or 'none (subclass training_core.Task)'}",
            )
        try:
            return found(found.Options.model_validate(reference.options))
        except ValidationError as error:
            raise _explained(
                error, where=self.folder / FILE_NAME, model=found.Options, prefix="task.options."
            ) from error


def _forget_other_project(name: str, folder: Path) -> None:
    """Two projects may both call their module `task`: let go of another folder's."""
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if file is not None and folder not in Path(file).resolve().parents:
        if (folder / f"{name}.py").exists() or (folder / name).is_dir():
            for loaded in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
                del sys.modules[loaded]
        importlib.invalidate_caches()


def open_project(
    folder: str | os.PathLike[str], *, overrides: list[str] | None = None, data: str = ""
) -> Project:
    """Read a project's settings.

    Args:
        folder: The folder that holds `evertrain.yaml`.
        overrides: `dotted.key=value`, the value read as YAML.
        data: Overrides `data.source` (relative to the current folder, not to the project).

    Raises:
        ConfigurationError: No such file, no YAML, an unknown key, a value of the wrong type.
    """
    path = Path(folder).expanduser().resolve()
    file = path / FILE_NAME
    if not file.is_file():
        raise ConfigurationError(
            f"there is no {FILE_NAME} in {path}",
            hint="name the folder of a project, for example: evertrain run examples/flights",
        )
    try:
        content = yaml.safe_load(file.read_text())
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{file} is not YAML: {error}", hint="mend it there") from error
    if not isinstance(content, dict):
        raise ConfigurationError(f"{file} holds no settings", hint="see evertrain schema")
    for override in overrides or []:
        _apply(content, override)
    if data:
        content.setdefault("data", {})["source"] = data if "://" in data else os.path.abspath(data)
    try:
        return Project(path, ProjectSettings.model_validate(content))
    except ValidationError as error:
        raise _explained(error, where=file, model=ProjectSettings) from error


def _apply(content: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigurationError(
            f"--set {override!r} is not of the form key=value",
            hint="for example: --set training.epochs=2",
        )
    *parents, last = key.strip().split(".")
    place = content
    for parent in parents:
        place = place.setdefault(parent, {})
        if not isinstance(place, dict):
            raise ConfigurationError(
                f"--set {override!r}: {parent!r} is a value, not a section",
                hint="evertrain schema lists every key",
            )
    try:
        place[last] = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigurationError(
            f"--set {override!r}: the value is not YAML", hint="quote it, as in 'key=\"text\"'"
        ) from error


def _explained(
    error: ValidationError, *, where: Path, model: type[BaseModel], prefix: str = ""
) -> ConfigurationError:
    """Say the first fault in words: file, key, what was expected, the nearest valid key."""
    first = error.errors()[0]
    location = [part for part in first["loc"] if isinstance(part, str)]
    key = prefix + ".".join(str(part) for part in first["loc"])
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        choices = _keys_at(model, location[:-1])
        near = difflib.get_close_matches(location[-1], choices, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        return ConfigurationError(
            f"{where}: unknown key {key!r}{more}",
            hint=f"{hint}valid keys here: {', '.join(sorted(choices))}",
        )
    if first["type"] == "missing":
        return ConfigurationError(
            f"{where}: {key!r} is missing{more}", hint="evertrain schema describes every key"
        )
    value = first.get("input")
    at = f"{key}: " if key else ""
    got = f", not {value!r}" if location and not isinstance(value, dict) else ""
    return ConfigurationError(
        f"{where}: {at}{first['msg'].removeprefix('Value error, ')}{got}{more}",
        hint="evertrain schema describes every key",
    )


def _keys_at(model: type[BaseModel], location: list[str]) -> list[str]:
    """Names of the fields of the settings class at a location."""
    for part in location:
        field = model.model_fields.get(part)
        if field is None:
            return []
        candidates = [field.annotation, *get_args(field.annotation)]
        nested = [c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)]
        if not nested:
            return []
        model = nested[0]
    return list(model.model_fields)
