"""The settings of the data: where it is, what it must fulfil, how it is divided."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from training_core.settings import Settings

# What is looked for in the data besides the suite, and what happens when it is found.
CheckName = Literal[
    "drift",  # a column moved further than the data's own history explains
    "new_category",  # values that the reference never had
    "label_shift",  # the label's distribution moved
    "label_relation",  # what a column says of the label changed
    "joint_shift",  # a classifier tells the new rows from the old
    "leak",  # a column alone knows the label
    "id_feature",  # a column names rows instead of describing them
    "future_rows",  # rows later than the snapshot itself
    "constant_column",
    "missing_column",  # no value in any row
    "near_duplicates",  # rows alike in all but their key
    "label_noise",  # labels that every model of the other rows contradicts
    "empty_object",  # an object of the snapshot has no rows
]
Level = Literal["block", "warn", "off"]
USUAL_LEVELS: dict[CheckName, Level] = {
    "drift": "block",
    "new_category": "warn",
    "label_shift": "block",
    "label_relation": "block",
    "joint_shift": "warn",
    "leak": "block",
    "id_feature": "warn",
    "future_rows": "block",
    "constant_column": "warn",
    "missing_column": "block",
    "near_duplicates": "warn",
    "label_noise": "warn",
    "empty_object": "warn",
}


class DataSettings(Settings):
    """Where the data is and which columns say what a row is."""

    source: str | list[str] = Field(
        description="Folder (relative to the project), s3://bucket/prefix, or a list of folders, "
        "prefixes and single objects."
    )
    pattern: str = Field(
        "*.parquet",
        description="Which objects below the source are data: their name, or with a / their whole "
        "key. {date} or {date:%Y%m} is a partition's date, {span} its number.",
    )
    newest: int = Field(
        0, ge=0, description="Rolling window: only the last N partitions; 0: all of them."
    )
    window: str = Field(
        "",
        pattern=r"^(\d+d)?$",
        description="Rolling window by time, for example 90d: partitions dated within it of the "
        "newest; needs {date} in data.pattern.",
    )
    row_key: list[str] = Field(min_length=1, description="Columns that together name one row.")
    time_column: str | None = Field(None, description="When a row came to be; UTC.")
    types: dict[str, str] = Field(
        default_factory=dict,
        description="DuckDB types of columns of CSV and JSON lines; those not named are inferred "
        "from all rows of each object.",
    )
    null_values: list[str] = Field(
        ["", "NA", "NaN", "null"], description="Texts that mean a missing value in CSV."
    )
    most_expansion: int = Field(
        200, ge=1, description="A compressed object that grows by more than this is refused."
    )
    memory: str = Field(
        "1GB", pattern=r"^\d+(\.\d+)?[MG]B$", description="Memory that queries over the rows get."
    )
    cache: str = Field(
        "", pattern=r"^(\d+(\.\d+)?[MG]B)?$",
        description="Size of the local cache of objects; empty: no limit.",
    )  # fmt: skip

    @model_validator(mode="after")
    def _window_has_dates(self) -> Self:
        if self.window and "{date" not in self.pattern:
            raise ValueError(f"data.window {self.window!r} needs {{date}} in data.pattern")
        if self.window and self.newest:
            raise ValueError("data.window and data.newest exclude each other")
        return self


class RowRule(Settings):
    """A rule that single rows may break; those that do are put aside."""

    name: str = Field(pattern=r"^[a-z0-9_]+$", description="Shown with every row put aside.")
    column: str = Field(description="The column that is looked at.")
    minimum: float | None = Field(None, description="Smallest value that is let through.")
    maximum: float | None = Field(None, description="Largest value that is let through.")
    allowed: list[str | int | float | bool] | None = Field(
        None, description="The values that are let through."
    )
    matches: str | None = Field(
        None, description="Regular expression that a whole text must match to be let through."
    )
    required: bool = Field(False, description="Whether a null breaks the rule; else it passes.")


class DriftSettings(Settings):
    """When a change is too large to be chance, and when it is too large to go on."""

    false_alarms: float = Field(
        0.005, gt=0, lt=0.5,
        description="Share of clean batches, over all columns together, that may raise an alarm.",
    )  # fmt: skip
    resamples: int = Field(1000, ge=200, description="Bootstrap draws behind each threshold.")
    least_psi: float = Field(
        0.02, ge=0, description="A smaller population stability index is never an alarm."
    )
    sudden_factor: float = Field(
        1.5, ge=1,
        description="A step from the reference's last days to the new ones that is this many times "
        "the largest of the past is an alarm, even where the past as a whole explains the column.",
    )  # fmt: skip
    block_factor: float = Field(
        3.0, ge=1,
        description="An alarm this many times over its threshold blocks, and so do columns that "
        "together say less than one part in this many of what they said of the label.",
    )  # fmt: skip
    block_psi: float = Field(
        0.5, ge=0, description="Below this population stability index nothing is blocked."
    )


class ValidationSettings(Settings):
    """What a snapshot must fulfil."""

    suite: str = Field("expectations.json", description="Great Expectations suite (JSON).")
    row_rules: list[RowRule] = Field(default_factory=list, description="Rules for single rows.")
    quarantine_budget: float = Field(
        0.001, ge=0, le=1, description="Share of rows that may be put aside before the run stops."
    )
    levels: dict[CheckName, Level] = Field(
        default_factory=dict,
        description="What a finding does: block, warn or off; those not named do as usual.",
    )
    leak_auc: float = Field(
        0.95, gt=0.5, le=1, description="A feature that alone ranks labels this well is a leak."
    )
    label_noise: float = Field(
        0.05, gt=0, le=1, description="Share of labels in confident doubt that is worth a warning."
    )
    joint_shift_auc: float = Field(
        0.75, gt=0.5, le=1,
        description="A classifier that tells new rows from old this well is worth a warning, "
        "unless the data's own history is as easily told apart.",
    )  # fmt: skip
    drift: DriftSettings = DriftSettings()

    def level(self, check: CheckName) -> Level:
        """What a finding of this check does."""
        return self.levels.get(check, USUAL_LEVELS[check])


class SplitSettings(Settings):
    """How rows are divided into train, validation and holdout."""

    by: Literal["time", "hash", "group", "stratified"] = Field(
        "time",
        description="time needs data.time_column, group needs split.group; hash goes by the row's "
        "key, stratified does so within each class of the label.",
    )
    group: list[str] = Field(
        default_factory=list, description="Columns whose rows stay together, for example a user."
    )
    holdout: float = Field(14, gt=0, description="time: days; otherwise: share of rows.")
    validation: float = Field(14, gt=0, description="time: days; otherwise: share of rows.")
    rare_class: int = Field(
        20, ge=1,
        description="Multiclass and multilabel: a class with fewer rows than this in all may be "
        "missing in validation or holdout, and is named; train needs every class.",
    )  # fmt: skip

    @model_validator(mode="after")
    def _group_is_named(self) -> Self:
        if (self.by == "group") != bool(self.group):
            raise ValueError("split.by: group and split.group go together")
        return self
