"""What the command line says: data on stdout, talk on stderr, progress only on a terminal."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from components.common.layout import project_store
from components.common.project import Project
from components.common.run_record import RunRecord

if TYPE_CHECKING:
    from pipelines.alerts import ChannelState
    from pipelines.data import DataPage
    from pipelines.doctor import Finding
    from pipelines.init.start import Written

TALK = Console(stderr=True, highlight=False)
_WIDE = 200  # characters, where there is no terminal to fit into
DATA = Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE)
_MARKS = {"done": "✓", "skipped": "·", "stopped": "✗", "failed": "✗", "interrupted": "!"} | {
    "not_run": "·"
}


def lines(value: Any, words: list[str], *, as_json: bool) -> None:
    """Print data: JSON for machines, lines for people."""
    print(json.dumps(value, indent=2)) if as_json else print("\n".join(words))


def error(words: str) -> None:
    """Say what went wrong."""
    TALK.print(f"error: {words}", markup=False, soft_wrap=True)  # paths must stay in one piece


def unexpected(fault: Exception) -> int:
    """Say what nobody foresaw; return the exit code. Usage errors come here too."""
    show = getattr(fault, "show", None)
    if show is not None and any(k.__name__ == "ClickException" for k in type(fault).__mro__):
        show()  # told apart by name: typer carries a click of its own
        return int(getattr(fault, "exit_code", 2))
    outside = isinstance(fault, (OSError, MemoryError))
    error(f"{type(fault).__name__}: {fault}\n\nhint: add --debug to see the traceback")
    return 3 if outside else 1


@contextmanager
def progress() -> Iterator[Callable[[str, str], None]]:
    """Show which step is under way: a spinner on a terminal, a line a step elsewhere."""
    began: dict[str, float] = {}
    with TALK.status("starting") as status:

        def on_step(name: str, event: str) -> None:
            if event == "started":
                began[name] = time.monotonic()
                status.update(name)
                return
            seconds = time.monotonic() - began.get(name, time.monotonic())
            TALK.print(f"{name:<18} {seconds:6.1f} s", markup=False)

        yield on_step


def waits(words: str) -> None:
    """Say what a run waits for."""
    TALK.print(words, markup=False, soft_wrap=True)


def run(project: Project, record: RunRecord, *, as_json: bool) -> None:
    """The end of a run: a table of its steps, the verdict and its reason, where the report is."""
    from pipelines.runs import report_location

    if as_json:
        print(record.model_dump_json(indent=2))
        return
    table = Table(title=f"{record.project}, run {record.run}", title_justify="left")
    table.add_column("step")
    table.add_column("seconds", justify="right")
    table.add_column("outcome")
    for step in record.steps:
        seconds = "" if step.status == "not_run" else f"{step.seconds:.1f}"
        words = step.status.replace("_", " ") + (" (cached)" if step.cache_hit else "")
        table.add_row(step.step, seconds, f"{_MARKS[step.status]} {words}")
    DATA.print(table)
    DATA.print(f"verdict:  {verdict_words(record)}", markup=False)
    for reason in record.reasons:
        DATA.print(f"reason:   {reason}", markup=False, soft_wrap=True)
    if record.hint:
        DATA.print(f"hint:     {record.hint}", markup=False, soft_wrap=True)
    DATA.print(f"champion: {_arrow(record)}", markup=False)
    location = report_location(project_store(project), record.run)
    DATA.print(f"report:   {location}", markup=False, soft_wrap=True)


def verdict_words(record: RunRecord) -> str:
    """One or two words for how a run ended."""
    if record.status == "finished":
        promoted = record.decision or "promoted"  # records had no decision once
        return {"promote": promoted, "hold": "held"}.get(record.verdict, record.verdict)
    return record.status.replace("_", " ")


def _arrow(record: RunRecord) -> str:
    before, after = record.champion_before or "none", record.champion_after or "none"
    return before if before == after else f"{before} → {after}"


def runs(records: list[RunRecord], *, as_json: bool) -> None:
    """The runs of a project."""
    if as_json:
        print(json.dumps({"runs": [r.model_dump(mode="json") for r in records]}, indent=2))
        return
    table = Table()
    for column in ("run", "outcome", "seconds", "champion", "reason"):
        table.add_column(column)
    for r in records:
        reason = r.reasons[0] if r.reasons else ""
        table.add_row(r.run, verdict_words(r), f"{r.seconds:.1f}", _arrow(r), reason)
    DATA.print(table) if records else print("there are no runs yet")


def data(page: DataPage, *, as_json: bool) -> None:
    """Where the page of a run's data is; its verdict is talk."""
    if not as_json:
        TALK.print(
            f"{page.judgement.headline} {page.judgement.reason}", markup=False, soft_wrap=True
        )
    lines(page.as_json(), [page.place], as_json=as_json)


def ask(question: str, proposal: str) -> str:
    """Ask a person on stderr; an empty answer takes the proposal.

    Not typer's prompt, which writes a blank to stdout.
    """
    usual = f" [{proposal}]" if proposal else ""
    print(f"{question}{usual}: ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer:
        raise KeyboardInterrupt
    return answer.strip() or proposal


def proposal(written: Written, *, as_json: bool) -> None:
    """What init read, what it decided, and what to do next."""
    from pipelines.init.table import rows_of

    files = [str(file) for file in written.files]
    if as_json:
        said = {"project": str(written.folder), **written.proposal.as_data(), "files": files}
        print(json.dumps(said, indent=2))
        return
    table = Table(show_header=False, title=f"wrote {written.folder}", title_justify="left")
    for name, words in rows_of(written.proposal):
        table.add_row(Text(name), Text(words))
    DATA.print(table)
    DATA.print(f"check:    {written.folder}/README.md says what to look at first", soft_wrap=True)
    DATA.print(f"next:     evertrain run {written.folder}", markup=False, soft_wrap=True)


def channels(found: list[ChannelState], *, as_json: bool) -> None:
    """Who is told of what, or what became of the test."""
    if as_json:
        print(json.dumps({"channels": [vars(c) for c in found]}, indent=2))
        return
    for c in found:
        words = c.words.replace("\n\n", "\n").replace("\n", "\n" + " " * 21)
        print(f"{'✗' if c.exit_code else '✓'} {c.name:<18} {words}")
        if not c.exit_code:
            print(" " * 21 + f"on: {', '.join(c.on)}")
    if not found:
        print("nobody is told: there are no channels under alerts in evertrain.yaml")


def findings(found: list[Finding], *, as_json: bool) -> None:
    """What the doctor found."""
    if as_json:
        print(json.dumps({"findings": [vars(f) for f in found]}, indent=2))
        return
    for f in found:
        mark = "✓" if f.exit_code == 0 else "✗"
        print(
            f"{mark} {f.name:<18} " + f.words.replace("\n\n", "\n").replace("\n", "\n" + " " * 21)
        )
