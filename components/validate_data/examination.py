"""Everything that is looked at in a snapshot, in order, whatever is wrong with it.

Row rules first: the rest sees what they let through. Then the suite, the profile, what has changed
since the references, and the checks of trust. Nothing here stops at the first fault, so that the
report shows them all; what has to stop the run is returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import duckdb
import pyarrow as pa

from components.common.data_figures import Drift, Finding, ValidateFigures
from components.common.records import StepContext
from components.common.row_rules import Cut, cut, hold_to_budget, put_aside
from components.common.settings import ProjectSettings
from components.common.tables import NUMBER, OBJECT, LocalObject, columns_of, quoted, text
from components.common.targets import TARGET, Target, add_targets, labelled
from components.validate_data.column_figures import column_figures
from components.validate_data.drift import drift_from
from components.validate_data.expectations import validate
from components.validate_data.joint_shift import (
    joint_shift,
    joint_shift_findings,
    sample_rows,
)
from components.validate_data.not_run import not_run
from components.validate_data.objects import find_empty_objects
from components.validate_data.profile import Profile
from components.validate_data.references import Reference
from components.validate_data.take_profile import take_profile
from components.validate_data.trust import find_all
from training_core.errors import StoppedByGate


@dataclass(frozen=True)
class Examined:
    """What was seen.

    Attributes:
        figures: For the record.
        over_budget: More rows were put aside than the budget allows.
        unchecked: A row rule cannot be checked, for its column is absent or of another type. What
            the suite says of the columns says more, and comes first.
        profile, sample: What later snapshots are compared with; None: it went no further than the
            suite.
    """

    figures: ValidateFigures
    over_budget: StoppedByGate | None
    unchecked: StoppedByGate | None
    profile: Profile | None
    sample: pa.Table | None


def examine(
    connection: duckdb.DuckDBPyConnection,
    context: StepContext,
    *,
    objects: Sequence[LocalObject],
    contents: Mapping[str, str],
    known: Sequence[Reference],
) -> Examined:
    """Look at the rows of the view `rows`.

    Args:
        connection: With the views `rows` and `located_rows`.
        context: Of the step; receives the rows that are put aside.
        objects: Of the snapshot.
        contents: The content hash of each object, by key.
        known: What the snapshot is compared with.
    """
    settings, task = context.project.settings, context.project.task()
    divided, unchecked = _divide(connection, settings)
    quarantine, over_budget = _put_aside(connection, context, divided, objects)
    results = validate(connection, "kept", context.project.folder / settings.validation.suite)
    fits = not any(not e.success and e.severity == "critical" for e in results)
    profile, sample = None, None
    drifts: list[Drift] = []
    findings = find_empty_objects(objects, settings.validation)
    new_rows = divided.rows
    if divided.rows > divided.aside:
        judged = _add_label_views(connection, label=task.label, target=task.target)
        profile = take_profile(connection, judged, settings=settings, label=task.label)
        for number, reference in enumerate(known):
            view = f"fresh_{number}"
            fresh = _fresh(connection, objects, contents, reference, rows=judged, view=view)
            new_rows = min(new_rows, fresh)
            if fresh:
                drift, found = _changes(
                    connection, view, reference, settings=settings, label=task.label
                )
                drifts.append(drift)
                findings += found
        if fits:  # what the suite refused would only be said again, or not be readable at all
            sample = sample_rows(connection, judged, settings=settings)
            findings += find_all(
                connection,
                settings=settings,
                label=task.label,
                target=task.target,
                features=task.preprocessor().columns,
                now=datetime.now(UTC),
            )
    return Examined(
        figures=ValidateFigures(
            rows=divided.rows,
            new_rows=new_rows,
            quarantined=divided.broken,
            quarantine=quarantine,
            expectations=results,
            warnings=sum(not e.success and e.severity != "critical" for e in results),
            columns=column_figures(profile) if profile is not None else [],
            drift=drifts,
            findings=sorted(findings, key=lambda f: f.level != "block"),
            not_run=not_run(
                settings,
                rows=divided.rows > divided.aside,
                fits=fits,
                known=bool(known),
                compared=bool(drifts),
            ),
        ),
        over_budget=over_budget,
        unchecked=unchecked,
        profile=profile,
        sample=sample,
    )


def _divide(
    connection: duckdb.DuckDBPyConnection, settings: ProjectSettings
) -> tuple[Cut, StoppedByGate | None]:
    """Cut the rows by the rules; if one cannot be checked, by none, and return why."""
    try:
        return cut(connection, "rows", settings.validation.row_rules), None
    except StoppedByGate as fault:
        return cut(connection, "rows", []), fault


def _put_aside(
    connection: duckdb.DuckDBPyConnection,
    context: StepContext,
    divided: Cut,
    objects: Sequence[LocalObject],
) -> tuple[str, StoppedByGate | None]:
    """Keep the rows that broke a rule; return where, and whether they are too many."""
    budget = context.project.settings.validation.quarantine_budget
    quarantine = put_aside(connection, context.store, divided=divided, objects=objects)
    try:
        hold_to_budget(divided, quarantine, store=context.store, budget=budget)
    except StoppedByGate as fault:
        return quarantine, fault
    return quarantine, None


def _add_label_views(connection: duckdb.DuckDBPyConnection, *, label: str, target: Target) -> str:
    """Make the views `judged` and `located_judged`: `kept` with the label as the task reads it.

    A label may be a text, or minutes of which the task asks whether they are more than fifteen.

    Returns:
        `judged`, or `kept` where the data lacks the label.
    """
    if label not in columns_of(connection, "kept"):
        return "kept"
    add_targets(connection, "kept", label=label, target=target)
    for prefix in ("", "located_"):
        rows = f"{prefix}kept"
        connection.execute(
            f"CREATE VIEW {prefix}judged AS SELECT {rows}.* REPLACE ({TARGET} AS {quoted(label)}) "
            f"FROM {labelled(rows, label, others_too=True)}"
        )
    return "judged"


def _fresh(
    connection: duckdb.DuckDBPyConnection,
    objects: Sequence[LocalObject],
    contents: Mapping[str, str],
    reference: Reference,
    *,
    rows: str,
    view: str,
) -> int:
    """Make a view of the rows in objects that a reference did not have; return how many."""
    new = [o for o in objects if contents[o.key] not in reference.contents]
    if not new:
        return 0
    files = ", ".join(text(str(o.path)) for o in new)
    connection.execute(
        f"CREATE VIEW {view} AS SELECT * EXCLUDE ({OBJECT}, {NUMBER}) FROM located_{rows} "
        f"WHERE {OBJECT} IN ({files})"
    )
    counted = connection.execute(f"SELECT count(*) FROM {view}").fetchall()
    return int(counted[0][0])


def _changes(
    connection: duckdb.DuckDBPyConnection,
    view: str,
    reference: Reference,
    *,
    settings: ProjectSettings,
    label: str,
) -> tuple[Drift, list[Finding]]:
    """Compare new rows with a reference: column by column, then all columns together."""
    now = take_profile(connection, view, settings=settings, label=label, edges=reference.profile)
    drift, findings = drift_from(
        now, reference.profile, settings=settings, reference=reference.words
    )
    if settings.validation.level("joint_shift") != "off":
        sample = sample_rows(connection, view, settings=settings)
        joint = joint_shift(sample, reference.sample, label=label)
        if joint is not None:
            told = {"classifier_auc": joint.auc, "classifier_columns": joint.columns}
            drift = drift.model_copy(update=told)
        findings += joint_shift_findings(joint, settings)
    return drift, findings
