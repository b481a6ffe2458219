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

from components.common.data_figures import ValidateFigures
from components.common.labels import Label
from components.common.records import StepContext
from components.common.row_rules import Cut, cut, hold_to_budget, put_aside
from components.common.settings import ProjectSettings
from components.common.tables import LocalObject
from components.common.targets import add_label_views
from components.validate_data.column_figures import column_figures
from components.validate_data.comparison import Seen, compare
from components.validate_data.drawn import draw
from components.validate_data.expectations import validate
from components.validate_data.not_run import not_run
from components.validate_data.objects import find_empty_objects
from components.validate_data.profile import Profile
from components.validate_data.references import Reference
from components.validate_data.trust import find_all
from training_core.errors import StoppedByGate


@dataclass(frozen=True)
class Examined:
    """What was seen.

    Attributes:
        figures: For the record.
        over_budget: More rows were put aside than the budget allows.
        unchecked: A rule or check cannot be carried out, for a column is absent or of another type.
            What the suite says of the columns says more, and comes first.
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
    label = Label.of(task)
    divided, unchecked = _divide(connection, settings)
    quarantine, over_budget = _put_aside(connection, context, divided, objects)
    results = validate(connection, "kept", context.project.folder / settings.validation.suite)
    fits = not any(not e.success and e.severity == "critical" for e in results)
    findings = find_empty_objects(objects, settings.validation)
    seen: Seen | None = None
    if divided.rows > divided.aside:
        try:
            rows = add_label_views(connection, label)
            drawn = draw(connection, rows, data=settings.data, label=label)
            seen = compare(
                connection, drawn, objects=objects, contents=contents, known=known,
                settings=settings, label=label,
            )  # fmt: skip
            findings += seen.findings
            if fits:  # what the suite refused would only be said again, or not be readable at all
                findings += find_all(
                    connection,
                    drawn,
                    seen.profile,
                    settings=settings,
                    label=label,
                    features=task.preprocessor().columns,
                    now=datetime.now(UTC),
                )
        except StoppedByGate as fault:
            unchecked = unchecked or fault
    return Examined(
        figures=ValidateFigures(
            rows=divided.rows,
            new_rows=seen.new_rows if seen else divided.rows,
            quarantined=divided.broken,
            quarantine=quarantine,
            expectations=results,
            warnings=sum(not e.success and e.severity != "critical" for e in results),
            label_kind=label.kind,
            columns=column_figures(seen.profile) if seen else [],
            drift=seen.drifts if seen else [],
            findings=sorted(findings, key=lambda f: f.level != "block"),
            not_run=not_run(
                settings,
                rows=divided.rows > divided.aside,
                readable=seen is not None,
                fits=fits,
                known=bool(known),
                compared=bool(seen and seen.drifts),
                kind=label.kind,
            ),
        ),
        over_budget=over_budget,
        unchecked=unchecked,
        profile=seen.profile if seen and fits else None,
        sample=seen.sample if seen and fits else None,
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
