"""The rows that are held in doubt, as all checks of trust see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import duckdb

from components.common.data_figures import Finding
from components.common.data_settings import CheckName
from components.common.labels import Label
from components.common.settings import ProjectSettings
from components.common.tables import columns_of
from components.validate_data.drawn import (
    DRAWN,
    LABELLED,
    PLACE,
    POSITIVE,
    ROWS,
    Drawn,
)
from components.validate_data.profile import ColumnProfile, Profile

SAMPLE = "trusted_sample"


@dataclass(frozen=True)
class Subject:
    """Some rows in DuckDB and what is known of them beforehand.

    The view `ROWS` and its columns `POSITIVE` and `PLACE` are those of `drawn.py`. The view
    `SAMPLE` has of each of two classes the 100,000 rows with the lowest places, or all; of a label
    that is not binary so many of the labelled rows.

    Attributes:
        columns: DuckDB types by name.
        seen: What a profile in cells of its own says of each column.
        rows: Number of them.
        labelled: Of those, with a label.
        positives: With a label that is yes.
        negatives: With one that is no.
        features: Columns that the task reads.
        now: When the snapshot was taken, with its time zone.
    """

    connection: duckdb.DuckDBPyConnection
    settings: ProjectSettings
    label: Label
    features: tuple[str, ...]
    now: datetime
    columns: dict[str, str]
    seen: dict[str, ColumnProfile]
    rows: int
    labelled: int
    positives: int
    negatives: int

    @property
    def time_column(self) -> str | None:
        return self.settings.data.time_column

    @property
    def label_columns(self) -> set[str]:
        """Columns that hold the label, as it came and as it is shown."""
        return {*self.label.columns, *self.label.shown}

    @property
    def content(self) -> list[str]:
        """Columns that describe a row: neither its key, nor its time, nor its label."""
        beside = {*self.settings.data.row_key, self.time_column, *self.label.beside}
        return [name for name in self.columns if name not in beside]

    @property
    def judged(self) -> list[str]:
        """Columns that may know the label: the content, and whatever else is a feature."""
        return [n for n in self.columns if n in self.content or n in self.features]

    @property
    def read(self) -> list[str]:
        """The features that the data has; that one is missing is for the suite to say."""
        return [name for name in self.features if name in self.columns]

    def is_on(self, check: CheckName) -> bool:
        return self.settings.validation.level(check) != "off"

    def finding(
        self,
        check: CheckName,
        message: str,
        *,
        hint: str,
        column: str = "",
        measured: float | None = None,
        limit: float | None = None,
        at_most: Literal["block", "warn"] = "block",
    ) -> Finding:
        """A finding at the level of its check; of a column that is no feature a warning at most."""
        level = self.settings.validation.level(check)
        unused = bool(column) and column not in self.features
        if unused:
            message += "; the task does not read it"
        return Finding(
            check=check,
            column=column,
            level="warn" if unused or "warn" in (level, at_most) else "block",
            measured=measured,
            limit=limit,
            message=message,
            hint=hint,
        )

    def one(self, query: str) -> tuple[Any, ...]:
        """The only row of an answer."""
        answer = self.connection.execute(query).fetchone()
        assert answer is not None
        return answer


def look_at(
    connection: duckdb.DuckDBPyConnection,
    drawn: Drawn,
    profile: Profile,
    *,
    settings: ProjectSettings,
    label: Label,
    features: Sequence[str],
    now: datetime,
) -> Subject:
    """Make the view `SAMPLE` of what was drawn."""
    beside = [name.strip('"') for name in (LABELLED, POSITIVE, PLACE)]
    columns = {n: t for n, t in columns_of(connection, ROWS).items() if n not in beside}
    connection.execute(
        f"CREATE OR REPLACE VIEW {SAMPLE} AS SELECT * FROM {DRAWN} WHERE {drawn.trusted}"
    )
    return Subject(
        connection=connection,
        settings=settings,
        label=label,
        features=tuple(dict.fromkeys(features)),  # a task may read one in two ways
        now=now,
        columns=columns,
        seen=profile.columns,
        rows=drawn.rows,
        labelled=drawn.labelled,
        positives=drawn.positives,
        negatives=drawn.negatives,
    )
