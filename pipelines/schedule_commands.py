"""The commands by which a team chooses when to retrain: `backtest` and `advise`."""

from __future__ import annotations

from typing import Annotated

import typer

from components.common.project import open_project
from pipelines.arguments import JsonOption, ProjectArgument, SetOption


def backtest(
    project: ProjectArgument,
    first: Annotated[str, typer.Option("--from", metavar="DAY", help="First date of the replay.")],
    last: Annotated[str, typer.Option("--to", metavar="DAY", help="Last day that is judged.")],
    every: Annotated[
        str, typer.Option(metavar="SPAN", help="day, week, month, quarter, or days as in 10d.")
    ] = "month",
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="never, newest, point, ours or drift; may be repeated. Default: all.",
        ),
    ] = None,
    data: Annotated[str, typer.Option(help="Data URI instead of data.source.")] = "",
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replay history as it arrived, and say what each policy of retraining would have cost."""
    from pipelines import show_backtest
    from pipelines.backtest.run import plan, run_backtest

    opened = open_project(project, overrides=settings, data=data)
    planned = plan(  # before torch is imported: a wrong day is said at once
        opened, given=settings or [], first=first, last=last, every=every, policies=policy or []
    )
    from components.common.runnable import runnable_task

    runnable_task(opened)  # what no run could end well with is found before one is started
    with show_backtest.progress(len(planned.schedule)) as (on_step, on_date):
        result = run_backtest(planned, on_step=on_step, on_date=on_date)
    show_backtest.result(result, planned.place.page, as_json=as_json)


def advise(
    project: ProjectArgument,
    worth: Annotated[
        float | None,
        typer.Option(
            min=0, help="Smallest gain that is worth a training; default: the retraining noise."
        ),
    ] = None,
    validate: Annotated[
        bool,
        typer.Option(
            "--validate",
            help="Validate the newest data first; else by what the last run found in its data.",
        ),
    ] = False,
    data: Annotated[str, typer.Option(help="Data URI instead of data.source.")] = "",
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say whether to retrain now, what that is expected to gain, and what is not known."""
    from pipelines import show_backtest
    from pipelines.advising import advice_for

    opened = open_project(project, overrides=settings, data=data)
    found = advice_for(opened, worth=worth, validate=validate)
    show_backtest.advice(found, as_json=as_json)
