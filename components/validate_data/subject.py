"""The rows that are held in doubt, as all checks of trust see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import duckdb

from components.common.data_figures import Finding
from components.common.data_settings import CheckName
from components.common.settings import ProjectSettings
from components.common.tables import columns_of, quoted
from components.common.targets import TARGET, Target, add_targets, labelled
from training_core.errors import StoppedByGate

ROWS, SAMPLE = "trusted", "trusted_sample"
# Names that no data has.
POSITIVE, PLACE = '"evertrain positive"', '"evertrain place"'
_A_CLASS = 100_000  # at an AUC of 0.95 they leave a standard error of 0.0007


@dataclass(frozen=True)
class Subject:
    """Some rows in DuckDB and what is known of them beforehand.

    The view `ROWS` has the data's columns, `POSITIVE` (whether the label is; NULL: there is none)
    and `PLACE` (a hash of the row's key). The table `SAMPLE` has of each class the 100,000 rows
    with the lowest hashes, or all.

    Attributes:
        columns: DuckDB types by name.
        rows: Number of them.
        positives: Rows with a positive label.
        negatives: Rows with a negative one.
        features: Columns that the task reads.
        now: When the snapshot was taken, with its time zone.
    """

    connection: duckdb.DuckDBPyConnection
    settings: ProjectSettings
    label: str
    features: tuple[str, ...]
    now: datetime
    columns: dict[str, str]
    rows: int
    positives: int
    negatives: int

    @property
    def time_column(self) -> str | None:
        return self.settings.data.time_column

    @property
    def content(self) -> list[str]:
        """Columns that describe a row: neither its key, nor its time, nor its label."""
        beside = {*self.settings.data.row_key, self.time_column, self.label}
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
    kept: str,
    *,
    settings: ProjectSettings,
    label: str,
    target: Target,
    features: Sequence[str],
    now: datetime,
) -> Subject:
    """Make the view and the sample.

    Raises:
        StoppedByGate: The data lacks the label, or a column of the row's key.
    """
    columns = columns_of(connection, kept)
    for name in settings.data.row_key:
        if name not in columns:
            raise StoppedByGate(
                f"the data lacks the column {name!r} of the row's key",
                hint="correct data.row_key, or ask where the column went",
            )
    add_targets(connection, kept, label=label, target=target)
    key = ", ".join(quoted(name) for name in settings.data.row_key)
    connection.execute(
        f"CREATE OR REPLACE VIEW {ROWS} AS SELECT {quoted(kept)}.*, {TARGET} > 0.5 AS {POSITIVE}, "
        f"hash({key}) AS {PLACE} FROM {labelled(kept, label, others_too=True)}"
    )
    counts = connection.execute(
        f"SELECT count(*), count(*) FILTER ({POSITIVE}), count(*) FILTER (NOT {POSITIVE}) "
        f"FROM {ROWS}"
    ).fetchone()
    assert counts is not None
    rows, positives, negatives = counts
    connection.execute(
        f"CREATE OR REPLACE TABLE {SAMPLE} AS SELECT * FROM {ROWS} WHERE CASE "
        f"WHEN {POSITIVE} THEN {lowest(_A_CLASS, positives)} "
        f"WHEN NOT {POSITIVE} THEN {lowest(_A_CLASS, negatives)} ELSE false END"
    )
    return Subject(
        connection=connection,
        settings=settings,
        label=label,
        features=tuple(dict.fromkeys(features)),  # a task may read one in two ways
        now=now,
        columns=columns,
        rows=rows,
        positives=positives,
        negatives=negatives,
    )


def lowest(count: int, rows: int) -> str:
    """SQL for whether a row is among about so many of so many rows: those of lowest `PLACE`."""
    return "true" if rows <= count else f"{PLACE} < {int(count / rows * 2**64)}"
