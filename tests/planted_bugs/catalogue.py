"""The page of the checks, with all planted bugs and what finds them.

python -m tests.planted_bugs.catalogue     # writes docs/checks.md
"""

from __future__ import annotations

import inspect
from pathlib import Path

from tests.planted_bugs.bugs import BUGS, THEMES
from tests.planted_bugs.contract import Bug, Healthy
from tests.planted_bugs.healthy import HEALTHY
from tests.planted_bugs.planting import Theme
from training_core.checks.catalogue import CHECKS

PAGE = Path(__file__).parents[2] / "docs" / "checks.md"
_FRAME = Path(__file__).with_name("page.md.in")


def page() -> str:
    """The page, as Markdown."""
    return _FRAME.read_text().format(
        checks=_checks(),
        count=len(BUGS),
        themes="\n\n".join(_bugs(theme) for theme in THEMES),
        healthy="\n".join(_healthy(task) for task in HEALTHY),
        healthy_count=len(HEALTHY),
    )


def _checks() -> str:
    lines = []
    for check in CHECKS:
        group = check.__module__.split(".")[2]
        mark = ", trains" if check.costs == "training" else ""
        lines.append(f"| `{check.name}` | {group}{mark} | {check.looks_at} |")
    return "\n".join(lines)


def _bugs(theme: Theme) -> str:
    head = "| bug | what is wrong | in | found by | seen |\n|---|---|---|---|---|"
    return "\n".join([f"### {theme.title}\n", head, *map(_bug, theme.bugs)])


def _bug(bug: Bug) -> str:
    found_by = ", ".join(f"`{name}`" for name in sorted(bug.found_by))
    warns = " (a warning is enough)" if bug.warns else ""
    seen = bug.seen or "–"
    return f"| `{bug.name}` | {bug.what} | {bug.host.name} | {found_by}{warns} | {seen} |"


def _healthy(healthy: Healthy) -> str:
    task = healthy.task()
    said = (inspect.getmodule(type(task)).__doc__ or "").splitlines()[0]
    return f"| `{healthy.name}` | {task.kind} | {said} |"


if __name__ == "__main__":
    PAGE.write_text(page())
