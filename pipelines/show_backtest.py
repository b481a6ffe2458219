"""What `evertrain backtest` and `evertrain advise` say."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from components.common.advice import Advice
from components.report_run.formats import percent, seconds, signed
from pipelines.backtest.page import waiting_words
from pipelines.backtest.policies import OURS
from pipelines.show import DATA, TALK

if TYPE_CHECKING:
    from pipelines.backtest.notes import Note
    from pipelines.backtest.result import BacktestResult, PolicyFigures

_LOOKS = {"retrain": "↻", "wait": "·", "cannot say": "?"}


@contextmanager
def progress(
    dates: int,
) -> Iterator[tuple[Callable[[str, str, str], None], Callable[[str, Note], None]]]:
    """Show which step of which date is under way, and a line for each date that is done."""
    began, done = time.monotonic(), 0
    with TALK.status("cutting the data by the time they arrived") as status:

        def on_step(date: str, step: str, event: str) -> None:
            if event == "started":
                status.update(Text(f"{date} ({done + 1} of {dates}): {step}"))

        def on_date(date: str, note: Note) -> None:
            nonlocal done
            done += 1
            took = seconds(sum(note.seconds.values()))
            TALK.print(
                f"{date}  {done} of {dates}  {note.outcome:<8} {took:>9}  "
                f"({seconds(time.monotonic() - began)} so far)",
                markup=False,
            )

        yield on_step, on_date


def result(found: BacktestResult, page: Path, *, as_json: bool) -> None:
    """A table of the policies, one of the periods, and where the page is."""
    if as_json:
        print(found.model_dump_json(indent=2))
        return
    metric = found.metric.replace("_", " ")
    table = Table(
        title=f"{found.project}, {found.first} to {found.last}, every {found.every}: "
        f"mean {metric}, lower is better",
        title_justify="left",
    )
    table.add_column("policy")
    for column in ("metric", f"minus {OURS}", "regret", "promoted", "trained", "hours"):
        table.add_column(column, justify="right")
    for each in found.policies:
        table.add_row(
            each.policy,
            f"{each.metric:.4f}",
            difference(each),
            percent(each.regret),
            str(each.promotions) if each.hours is not None else "",
            str(each.trainings) if each.hours is not None else "",
            f"{each.hours:.2f}" if each.hours is not None else "",
        )
    DATA.print(table)
    DATA.print(_by_period(found))
    for words in waiting_words(found):
        DATA.print(Text(f"waiting:  {words}"), soft_wrap=True)
    for note in found.notes:
        DATA.print(Text(f"note:     {note}"), soft_wrap=True)
    DATA.print(Text(f"page:     {page}"), soft_wrap=True)


def difference(figures: PolicyFigures) -> str:
    """A policy's difference from `ours` with its interval."""
    if figures.policy == OURS:
        return ""
    mean = signed(figures.difference, 4)
    if figures.low is None or figures.high is None:
        return mean
    return f"{mean} ({signed(figures.low, 4)} to {signed(figures.high, 4)})"


def _by_period(found: BacktestResult) -> Table:
    table = Table(title="by period", title_justify="left")
    table.add_column("from")
    table.add_column("rows", justify="right")
    names = [each.policy for each in found.policies]
    for name in names:
        table.add_column(name, justify="right")
    table.add_column("the run")
    for period in found.periods:
        values = (period.metric.get(name) for name in names)
        table.add_row(
            period.start,
            f"{period.rows:,}",
            *(f"{value:.4f}" if value is not None else "" for value in values),
            period.outcome,
        )
    return table


def advice(found: Advice, *, as_json: bool) -> None:
    """The advice, what it rests on, and what it does not."""
    if as_json:
        print(found.model_dump_json(indent=2))
        return
    act = "" if found.advice != "cannot say" else ", so retrain"
    DATA.print(Text(f"advice:   {_LOOKS[found.advice]} {found.advice}{act}"))
    if found.gain is None:
        DATA.print("gain:     not known")
    else:
        words = f"{signed(found.gain.low, 4)} to {signed(found.gain.high, 4)}"
        DATA.print(Text(f"gain:     {signed(found.gain.mean, 4)} ({words})"))
    for reason in found.reasons:
        DATA.print(Text(f"reason:   {reason}"), soft_wrap=True)
    for words in found.unknown:
        DATA.print(Text(f"unknown:  {words}"), soft_wrap=True)
