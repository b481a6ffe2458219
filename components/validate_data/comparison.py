"""New rows beside data that was validated before: which they are, and how far from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from components.common.data_figures import Drift, Finding
from components.common.labels import Label
from components.common.settings import ProjectSettings
from components.common.tables import NUMBER, OBJECT, LocalObject, text
from components.validate_data.drawn import Drawn
from components.validate_data.drift import drift_from
from components.validate_data.joint_shift import (
    joint_shift,
    joint_shift_findings,
    sample_rows,
)
from components.validate_data.profile import Profile
from components.validate_data.references import Reference
from components.validate_data.take_profile import take_profile, take_profiles


@dataclass(frozen=True)
class Seen:
    """A snapshot's rows, and its new ones beside each reference.

    Attributes:
        profile: Of all rows, in cells of its own.
        sample: Some of them, for later snapshots to be compared with.
        new_rows: In objects that no reference had.
        drifts: From each reference that lacks some of the rows.
        findings: What is too far.
    """

    profile: Profile
    sample: pa.Table
    new_rows: int
    drifts: list[Drift]
    findings: list[Finding]


def compare(
    connection: duckdb.DuckDBPyConnection,
    drawn: Drawn,
    *,
    objects: Sequence[LocalObject],
    contents: Mapping[str, str],
    known: Sequence[Reference],
    settings: ProjectSettings,
    label: Label,
) -> Seen:
    """Profile all rows, and those that are new to each reference in its cells.

    Args:
        connection: On which `draw` has made its view and table.
        drawn: What it returned; beside its view there is `located_VIEW`.
        objects: Of the snapshot.
        contents: The content hash of each object, by key.
        known: What the snapshot is compared with.
        settings: Of the project.
        label: Of the task.
    """
    rows = drawn.view
    views = [
        _new_rows(connection, objects, contents, reference, rows=rows, view=f"new_{number}")
        for number, reference in enumerate(known)
    ]
    whole = [r.profile for r, view in zip(known, views, strict=True) if view == rows]
    profile, *counted = take_profiles(
        connection, rows, settings=settings, label=label, edges=[None, *whole], drawn=drawn
    )  # one scan for all that have all rows
    sample = sample_rows(connection, rows, settings=settings, drawn=drawn)
    new_rows = profile.rows
    drifts: list[Drift] = []
    findings: list[Finding] = []
    for reference, view in zip(known, views, strict=True):
        if view is None:
            new_rows = 0
            continue
        if view == rows:
            now, drawn_now = counted.pop(0), sample
        else:
            now = take_profile(
                connection, view, settings=settings, label=label, edges=reference.profile
            )
            drawn_now = sample_rows(connection, view, settings=settings)
        new_rows = min(new_rows, now.rows)
        if now.rows:
            drift, found = _changes(now, drawn_now, reference, settings=settings, label=label)
            drifts.append(drift)
            findings += found
    return Seen(profile, sample, new_rows, drifts, findings)


def _new_rows(
    connection: duckdb.DuckDBPyConnection,
    objects: Sequence[LocalObject],
    contents: Mapping[str, str],
    reference: Reference,
    *,
    rows: str,
    view: str,
) -> str | None:
    """Return a view of the rows in objects that a reference did not have; None: it had them all."""
    new = [o for o in objects if contents[o.key] not in reference.contents]
    if len(new) in (0, len(objects)):
        return rows if new else None
    files = ", ".join(text(str(o.path)) for o in new)
    connection.execute(
        f"CREATE VIEW {view} AS SELECT * EXCLUDE ({OBJECT}, {NUMBER}) FROM located_{rows} "
        f"WHERE {OBJECT} IN ({files})"
    )
    return view


def _changes(
    now: Profile, sample: pa.Table, reference: Reference, *, settings: ProjectSettings, label: Label
) -> tuple[Drift, list[Finding]]:
    """Compare new rows with a reference: column by column, then all columns together."""
    drift, findings = drift_from(
        now, reference.profile, settings=settings, reference=reference.words
    )
    if settings.validation.level("joint_shift") != "off":
        joint = joint_shift(sample, reference.sample, label=label)
        if joint is not None:
            told = {"classifier_auc": joint.auc, "classifier_columns": joint.columns}
            drift = drift.model_copy(update=told)
        findings += joint_shift_findings(joint, settings)
    return drift, findings
