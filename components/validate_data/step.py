"""Hold a snapshot against its rules, its suite and its own past; stop the run where it fails."""

from __future__ import annotations

from pathlib import Path

from components.common.artifacts import MetricsArtifact, log_metrics, write_json
from components.common.data_figures import Expectation, Finding, ValidateFigures
from components.common.local import fetch_snapshot, open_cache, refuse_mixed_schemas
from components.common.manifest import read_manifest
from components.common.records import step
from components.common.runnable import runnable_task
from components.common.tables import add_view, naming_damage, open_tables
from components.validate_data.data_docs import data_docs_page
from components.validate_data.examination import examine
from components.validate_data.references import keep_profile, references, remember_as_last
from training_core.errors import StoppedByGate


def run(
    project: str,
    store: str,
    overrides: list[str],
    run_key: str,
    data_digest: str,
    validated: str,
    data_docs: str,
    metrics: MetricsArtifact,
) -> None:
    """See `component.py`."""
    with step(
        "validate_data", project=project, store=store, overrides=overrides, run_key=run_key
    ) as context:
        runnable_task(context.project)  # a run that was not started by the command line
        manifest = read_manifest(context.store, data_digest, open_cache(context))
        objects = fetch_snapshot(context, manifest)
        refuse_mixed_schemas(objects)
        settings, scratch = context.project.settings.data, context.home / "scratch"
        with (
            open_tables(settings, readable=[context.cache], scratch=scratch) as connection,
            naming_damage(connection, objects),
        ):
            add_view(connection, "rows", objects)
            seen = examine(
                connection,
                context,
                objects=objects,
                contents=dict(manifest.keys_and_hashes()),
                known=references(context, digest=data_digest),
            )
        context.say(seen.figures)
        Path(data_docs).parent.mkdir(parents=True, exist_ok=True)
        Path(data_docs).write_text(data_docs_page(seen.figures.expectations))
        log_metrics(metrics, _metrics(seen.figures))
        if seen.over_budget is not None:
            raise seen.over_budget
        refuse_no_rows(seen.figures)  # what is said of the columns of no rows would lead astray
        refuse_failures(seen.figures.expectations)
        if seen.unchecked is not None:
            raise seen.unchecked
        refuse_findings(seen.figures.findings)
        assert seen.profile is not None
        assert seen.sample is not None
        keep_profile(context, run_key, digest=data_digest, profile=seen.profile, sample=seen.sample)
        remember_as_last(context, run_key)
        write_json(validated, {"digest": data_digest})


def refuse_failures(results: list[Expectation]) -> None:
    """Stop where a blocking expectation failed.

    Raises:
        StoppedByGate: Names the first three, with what was expected and seen.
    """
    failed = [e for e in results if not e.success and e.severity == "critical"]
    if failed:
        words = "; ".join(
            f"{e.name}{f' on {e.column}' if e.column else ''}: expected {e.expected}, "
            f"saw {e.observed}"
            for e in failed[:3]
        )
        raise StoppedByGate(
            f"the data fails {len(failed)} blocking expectation{'s' * (len(failed) > 1)}: {words}",
            hint="the report lists them all; mend the data, or change the suite if it is wrong",
        )


def refuse_findings(findings: list[Finding]) -> None:
    """Stop where a check other than the suite found something that blocks.

    Raises:
        StoppedByGate: Names the first three.
    """
    blocking = [f for f in findings if f.level == "block"]
    if blocking:
        more = f" (and {len(blocking) - 3} more)" if len(blocking) > 3 else ""
        checks = " and ".join(sorted({f.check for f in blocking}))
        raise StoppedByGate(
            "; ".join(f.message for f in blocking[:3]) + more,
            hint=blocking[0].hint
            or f"mend the data; if this is how it will be, set validation.levels for {checks}",
        )


def refuse_no_rows(figures: ValidateFigures) -> None:
    """Stop where nothing is left to train on.

    Raises:
        StoppedByGate: The snapshot has no rows, or all of them were put aside.
    """
    if figures.rows == sum(figures.quarantined.values()):
        raise StoppedByGate(
            f"all {figures.rows} rows were put aside" if figures.rows
            else "the snapshot has no rows",
            hint="has the feed stopped? validation.row_rules name what rows are put aside for",
        )  # fmt: skip


def _metrics(figures: ValidateFigures) -> dict[str, float]:
    return {
        "rows": figures.rows,
        "new_rows": figures.new_rows,
        "rows_put_aside": sum(figures.quarantined.values()),
        "expectations_failed": sum(not e.success for e in figures.expectations),
        "findings": len(figures.findings),
        "findings_that_block": sum(f.level == "block" for f in figures.findings),
    }
