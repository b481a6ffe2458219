"""What the checks of the training code come to, in sentences."""

from __future__ import annotations

import math

from components.common.figures import CheckFigures
from components.report_run.formats import percent, plural, seconds

_LONG = 600.0  # seconds of a planned run, of which a share is worth saying

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
        parts.append(f"{found['skipped']} not made")
    return f"{plural(len(seen.checks), 'check')}: {', '.join(parts)}."


def not_made(seen: CheckFigures) -> str:
    """Which checks were not made, and why; empty: all were."""
    reasons: dict[str, list[str]] = {}
    for check in seen.checks:
        if check.verdict == "skipped":
            reasons.setdefault(check.message, []).append(check.name)
    return "; ".join(
        f"{plural(len(names), 'check was', 'checks were')} not made ({why}): {', '.join(names)}"
        for why, names in reasons.items()
    )


def share_of_plan(seen: CheckFigures) -> str:
    """What the checks took, beside what they guard; empty where it was not measured.

    A share says something of a long run only: of a short one, checks may well take as long.
    """
    if not seen.seconds:
        return ""
    said = f"The checks took {seconds(seen.seconds)}"
    planned = seen.planned_seconds
    if not planned or not math.isfinite(planned) or planned < 0:
        return said + "."
    if planned < _LONG:
        return f"{said}; training is expected to take {seconds(planned)}."
    return (
        f"{said}, {percent(seen.seconds / planned)} of the {seconds(planned)} that training is "
        "expected to take."
    )
