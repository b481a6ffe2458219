"""Whether the rows can be trusted: leaks, ids, times, duplicates, wrong labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import duckdb

from components.common.data_figures import Finding
from components.common.data_settings import CheckName
from components.common.labels import Label
from components.common.settings import ProjectSettings
from components.validate_data.columns import find_constant, find_ids, find_missing
from components.validate_data.drawn import Drawn
from components.validate_data.label_noise import find_label_noise
from components.validate_data.leaks import find_leaks
from components.validate_data.near_duplicates import find_near_duplicates
from components.validate_data.not_run import NOT_OF_KIND
from components.validate_data.profile import Profile
from components.validate_data.subject import Subject, look_at
from components.validate_data.times import find_future


def find_all(
    connection: duckdb.DuckDBPyConnection,
    drawn: Drawn,
    profile: Profile,
    *,
    settings: ProjectSettings,
    label: Label,
    features: Sequence[str],
    now: datetime,
) -> list[Finding]:
    """Run every check of trust that is not off.

    Args:
        connection: On which `draw` has made its view and table.
        drawn: What it returned.
        profile: Of the same rows, in cells of its own.
        settings: Of the project: the row's key, its time, limits and levels.
        label: Of the task.
        features: Raw columns that the task reads, `task.preprocessor().columns`. A finding about
            any other column is a warning at most.
        now: When the snapshot was taken, with its time zone.

    Returns:
        What was found, those that block first.

    Raises:
        StoppedByGate: The data lacks the time.
    """
    subject = look_at(
        connection, drawn, profile, settings=settings, label=label, features=features, now=now
    )
    checks: list[tuple[CheckName, Callable[[Subject], list[Finding]]]] = [
        ("missing_column", find_missing),
        ("constant_column", find_constant),
        ("leak", find_leaks),
        ("id_feature", find_ids),
        ("future_rows", find_future),
        ("near_duplicates", find_near_duplicates),
        ("label_noise", find_label_noise),
    ]
    made = [
        (check, find)
        for check, find in checks
        if subject.is_on(check) and check not in NOT_OF_KIND[label.kind]
    ]
    found = [f for _, find in made for f in find(subject)]
    return sorted(found, key=lambda finding: finding.level != "block")
