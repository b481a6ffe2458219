"""What `evertrain check` says: each finding as it comes on stderr, the table of all on stdout."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from components.report_run import check_words
from components.report_run.formats import plain, seconds
from pipelines.show import DATA, TALK

if TYPE_CHECKING:
    from pipelines.check import Checked
    from training_core.checks.contract import Check, Finding

_LOOKS = {
    "pass": ("✓", "green"),
    "warn": ("!", "yellow"),
    "fail": ("✗", "red"),
    "not_applicable": ("·", "dim"),
    "skipped": ("–", "dim"),
}

_ROOM = 140  # characters from which the words fit beside the figures; they were said before


@contextmanager
def progress(names: Sequence[str]) -> Iterator[Callable[[Finding], None]]:
    """Show which check is under way, and each finding: a spinner on a terminal, else plain lines.

    Args:
        names: Of the checks, in the order in which they are made.
    """
    waiting = list(names)
    width = max(map(len, names), default=0)
    with TALK.status("reading a sample of the data") as status:

        def on_finding(finding: Finding) -> None:
            mark, style = _LOOKS[finding.verdict]
            words = " ".join(finding.message.split())
            line = Text.assemble(
                (mark, style), f" {finding.name:<{width}} {finding.seconds:5.1f} s  {words}"
            )
            TALK.print(line, soft_wrap=not TALK.is_terminal)
            if finding.name in waiting:
                waiting.remove(finding.name)
            status.update(Text(waiting[0]) if waiting else "done")

        yield on_finding


def result(checked: Checked, *, as_json: bool) -> None:
    """The table of all findings, what they come to, and where the page is."""
    if as_json:
        print(json.dumps(checked.as_json(), indent=2))
        return
    table = Table(title=f"{checked.project}, checks of the training code", title_justify="left")
    table.add_column("check", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for column in ("measured", "limit", "took"):
        table.add_column(column, justify="right", no_wrap=True)
    wide = DATA.width >= _ROOM
    if wide:
        table.add_column("in words")
    for check in checked.figures.checks:
        mark, style = _LOOKS[check.verdict]
        table.add_row(
            Text(check.name),
            Text(f"{mark} {check.verdict.replace('_', ' ')}", style=style),
            *(plain(v) if v is not None else "" for v in (check.measured, check.limit)),
            seconds(check.seconds),
            *([Text(check.message)] if wide else []),
        )
    DATA.print(table)
    for check in checked.figures.checks:
        if check.advice:
            DATA.print(Text(f"next:    {check.name}: {check.advice}"), soft_wrap=True)
    DATA.print(Text(f"sample:  {_sample(checked)}"), soft_wrap=True)
    DATA.print(Text(f"found:   {check_words.summary(checked.figures)}"), soft_wrap=True)
    if planned := check_words.share_of_plan(checked.figures):
        DATA.print(Text(f"took:    {planned}"), soft_wrap=True)
    if checked.page:
        DATA.print(Text(f"page:    {checked.page}"), soft_wrap=True)
    if left_out := check_words.not_made(checked.figures):
        DATA.print(Text(f"but:     {left_out}"), soft_wrap=True)


def _sample(checked: Checked) -> str:
    rows = ", ".join(f"{count:,} rows of {part}" for part, count in checked.rows.items())
    return f"{rows}; {checked.read:,} of {checked.objects:,} objects read; {checked.divided}"


def catalogue(checks: Sequence[Check], *, as_json: bool) -> None:
    """The checks there are, and what each looks at."""
    if as_json:
        said = [{"name": c.name, "looks_at": c.looks_at, "costs": c.costs} for c in checks]
        print(json.dumps({"checks": said}, indent=2))
        return
    table = Table()
    for column in ("check", "what holds where all is well", "costs"):
        table.add_column(column)
    for check in checks:
        table.add_row(Text(check.name), Text(check.looks_at), check.costs)
    DATA.print(table) if checks else print("there are no checks")
