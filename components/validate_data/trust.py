"""Whether the rows can be trusted: leaks, ids, times, duplicates, wrong labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import duckdb

from components.common.data_figures import Finding
from components.common.data_settings import CheckName
from components.common.settings import ProjectSettings
from components.common.targets import Target
from components.validate_data.columns import facts_of, find_constant, find_ids, find_missing
from components.validate_data.label_noise import find_label_noise
from components.validate_data.leaks import find_leaks
from components.validate_data.near_duplicates import find_near_duplicates
from components.validate_data.subject import look_at
from components.validate_data.times import find_future


def find_all(
    connection: duckdb.DuckDBPyConnection,
    *,
    settings: ProjectSettings,
    label: str,
    target: Target,
    features: Sequence[str],
    now: datetime,
    kept: str = "kept",
) -> list[Finding]:
    """Run every check of trust that is not off.

    Args:
        connection: With the view `kept`; a few tables and views are made beside it.
        settings: Of the project: the row's key, its time, limits and levels.
        label: The label's column.
        target: `Task.target`, which sees each different label once.
        features: Raw columns that the task reads, `task.preprocessor().columns`. A finding about
            any other column is a warning at most.
        now: When the snapshot was taken, with its time zone.
        kept: The view of the rows.

    Returns:
        What was found, those that block first.

    Raises:
        StoppedByGate: The data lacks the label, the time or a column of the key.
    """
    subject = look_at(
        connection, kept, settings=settings, label=label, target=target, features=features, now=now
    )
    if not subject.rows:
        return []
    facts = facts_of(subject)
    checks: list[tuple[CheckName, Callable[[], list[Finding]]]] = [
        ("missing_column", lambda: find_missing(subject, facts)),
        ("constant_column", lambda: find_constant(subject, facts)),
        ("leak", lambda: find_leaks(subject, facts)),
        ("id_feature", lambda: find_ids(subject, facts)),
        ("future_rows", lambda: find_future(subject)),
        ("near_duplicates", lambda: find_near_duplicates(subject)),
        ("label_noise", lambda: find_label_noise(subject)),
    ]
    found = [f for check, find in checks if subject.is_on(check) for f in find()]
    return sorted(found, key=lambda finding: finding.level != "block")
