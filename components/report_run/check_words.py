"""What the checks of the training code come to, in sentences."""

from __future__ import annotations

import math

from components.common.figures import CheckFigures
from components.report_run.formats import percent, plural, seconds

# The worst first: in this order people read them.
HEADINGS = {
    "fail": "What is broken",
    "warn": "What may be wrong",
    "pass": "What is well",
    "not_applicable": "What this task does not have",
    "skipped": "What was not looked at",
}


def counts(seen: CheckFigures) -> dict[str, int]:
    """How many checks had each verdict, the worst first."""
    return {v: sum(check.verdict == v for check in seen.checks) for v in HEADINGS}


def summary(seen: CheckFigures) -> str:
    """How many checks there were, and what became of them."""
    if not seen.checks:
        return "No check was made."
    found = counts(seen)
    parts = [f"{found['fail'] or 'none'} failed"]
    if found["warn"]:
        parts.append(plural(found["warn"], "warning"))
    if found["pass"]:
        parts.append(f"{found['pass']} passed")
    if found["not_applicable"]:
        verb = "does" if found["not_applicable"] == 1 else "do"
        parts.append(f"{found['not_applicable']} {verb} not apply")
    if found["skipped"]:
        parts.append(f"{found['skipped']} skipped")
    return f"{plural(len(seen.checks), 'check')}: {', '.join(parts)}."


def share_of_plan(seen: CheckFigures) -> str:
    """What the checks took, beside what they guard; empty where it was not measured."""
    if not seen.seconds:
        return ""
    said = f"The checks took {seconds(seen.seconds)}"
    planned = seen.planned_seconds
    if not planned or not math.isfinite(planned) or planned < 0:
        return said + "."
    return (
        f"{said}, {percent(seen.seconds / planned)} of the {seconds(planned)} that training is "
        "expected to take."
    )
