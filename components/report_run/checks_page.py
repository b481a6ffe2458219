"""The checks of the training code on a page of their own: the same section as in the report.

page = render_checks(figures, project="flights", when=datetime.now(UTC))
"""

from __future__ import annotations

from datetime import datetime

from components.common.figures import CheckFigures
from components.report_run import check_words
from components.report_run.check_section import ALONE, check_groups
from components.report_run.formats import plural, sentence, short, title
from components.report_run.templates import fitted

LONGEST = 600  # characters of a reason


def render_checks(figures: CheckFigures, *, project: str, when: datetime) -> str:
    """Return the page.

    Args:
        figures: As the step would record them.
        project: Its name.
        when: The checks were made.
    """
    values = {
        "project": project,
        "when": when,
        "figures": figures,
        "groups": check_groups(figures, share=ALONE),
        "said": check_words,
        **_verdict(figures),
    }
    return fitted("template_checks_page.html", values)


def _verdict(figures: CheckFigures) -> dict[str, str]:
    """The verdict as one word and one sentence, its reason, and what to do."""
    found = check_words.counts(figures)
    worst = next((v for v in ("fail", "warn") if found[v]), "pass")
    first = next((c for c in figures.checks if c.verdict == worst), None)
    if first is None or (worst == "pass" and not found["pass"]):
        return {
            "verdict": "not judged", "headline": "Nothing was found, for nothing was looked at.",
            "reason": check_words.summary(figures), "advice": "",
        }  # fmt: skip
    headline = {
        "fail": f"The training code is broken: {plural(found['fail'], 'check')} failed.",
        "warn": f"The training code runs, with {plural(found['warn'], 'warning')}.",
        "pass": "Nothing is wrong with the training code.",
    }[worst]
    reason = f"{title(short(first.name, 80))}: {short(first.message, LONGEST)}"
    return {
        "verdict": {"fail": "broken", "warn": "sane, with warnings", "pass": "sane"}[worst],
        "headline": headline,
        "reason": check_words.summary(figures) if worst == "pass" else sentence(reason),
        "advice": "Nothing has to be done."
        if worst == "pass"
        else sentence(short(first.advice, LONGEST)),
    }
