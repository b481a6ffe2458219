"""Hold a snapshot against its suite, profile it, and put bad rows aside."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd

from components.common.artifacts import MetricsArtifact, log_metrics, write_json
from components.common.champion import PromotionLog
from components.common.data_figures import Expectation, ValidateFigures
from components.common.local import fetch_snapshot, refuse_mixed_schemas
from components.common.manifest import read_manifest
from components.common.records import StepContext, step
from components.common.rows import broken_rules, read_snapshot, write_frame
from components.validate_data.expectations import data_docs_page, validate
from components.validate_data.profile import drift_between, find_leaks, profile_of
from infra.errors import ObjectMissing
from training_core.errors import StoppedByGate


def profile_key(run_key: str) -> str:
    """Where a snapshot's profile lies; later snapshots are compared with the champion's."""
    return f"profiles/{run_key}.json"


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
        settings = context.project.settings
        manifest = read_manifest(context.store, data_digest)
        refuse_mixed_schemas(fetch_snapshot(context, manifest))
        rows = read_snapshot(context, manifest)
        results = validate(rows, context.project.folder / settings.validation.suite)
        rules_fault: StoppedByGate | None = None
        try:
            aside = broken_rules(rows, settings.validation.row_rules)
        except StoppedByGate as error:  # the suite speaks first, and the report shows what it saw
            rules_fault = error
            aside = pd.Series("", index=rows.index, dtype="object")
        kept = rows[aside == ""]
        label = context.project.task().label
        reference, before = _reference(context)
        profile = profile_of(rows)
        context.store.put(profile_key(run_key), json.dumps(profile).encode())
        figures = ValidateFigures(
            rows=len(rows),
            quarantined=dict(Counter(aside[aside != ""])),
            expectations=results,
            warnings=sum(not e.success and e.severity != "critical" for e in results),
            reference=reference,
            drift=drift_between(rows, before) if before else [],
            leaks=find_leaks(kept, label, settings.validation.leak_auc),
        )
        context.say(figures)
        Path(data_docs).parent.mkdir(parents=True, exist_ok=True)
        Path(data_docs).write_text(data_docs_page(results))
        log_metrics(
            metrics,
            {
                "rows": len(rows),
                "rows_put_aside": int((aside != "").sum()),
                "expectations_failed": sum(not e.success for e in results),
            },
        )
        _put_aside(context, rows, aside, run_key)
        refuse_failures(results)
        if rules_fault is not None:
            raise rules_fault
        if figures.leaks:
            worst = figures.leaks[0]
            raise StoppedByGate(
                f"the column {worst.column!r} alone ranks the labels with an AUC of "
                f"{worst.auc:.3f} (limit {settings.validation.leak_auc}): it seems to know them",
                hint="find out whether it is known at prediction time; if it truly is, raise "
                "validation.leak_auc",
            )
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


def _put_aside(
    context: StepContext, rows: pd.DataFrame, aside: pd.Series[Any], run_key: str
) -> None:
    """Keep the rows that broke a rule, each with the rule's name, within the budget."""
    bad = rows[aside != ""].assign(broken_rule=aside[aside != ""])
    if bad.empty:
        return
    sha256 = write_frame(context.store, bad, context.home / "scratch" / f"{run_key}-aside")
    budget = context.project.settings.validation.quarantine_budget
    if len(bad) > budget * len(rows):
        worst = bad["broken_rule"].value_counts()
        raise StoppedByGate(
            f"{len(bad)} of {len(rows)} rows break row rules, more than the budget of {budget:.2%}"
            f" (most often: {worst.index[0]}, {worst.iloc[0]} times)",
            hint=f"they are kept as objects/{sha256} (Parquet) in {context.store.uri}",
        )


def _reference(context: StepContext) -> tuple[str, dict[str, Any]]:
    """The profile of the data that the champion was trained on, and its name."""
    head = PromotionLog(context.store).head()
    if head is None:
        return "", {}
    try:
        profile = json.loads(context.store.get(profile_key(head.run_key)))
    except ObjectMissing:
        return "", {}
    return f"the data of champion {head.version}", profile
