"""The command `evertrain tune`: search settings, say what was found, and propose a patch."""

from __future__ import annotations

from typing import Annotated

import typer

from components.common.project import open_project
from pipelines.arguments import JsonOption, ProjectArgument, SetOption
from training_core.errors import StoppedByGate


def tune(
    project: ProjectArgument,
    trials: Annotated[int | None, typer.Option(help="Trials in all; default: tune.trials.")] = None,
    hours: Annotated[
        float | None, typer.Option(help="No trial begins after so many; default: tune.hours.")
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(metavar="N", help="Search the nuisances anew for this batch size."),
    ] = None,
    run: Annotated[
        str, typer.Option("--run", metavar="RUN", help="Whose splits; default: the newest.")
    ] = "",
    holdout: Annotated[
        bool, typer.Option(help="Compare the winner on the holdout, once, at the end.")
    ] = True,
    apply: Annotated[
        bool, typer.Option("--apply", help="Write the winner into evertrain.yaml.")
    ] = False,
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search settings: which matter, what is best, and what that is worth, with its noise."""
    from pipelines import show_tune
    from pipelines.splits import find_splits

    given = [*(settings or [])]
    given += [f"tune.trials={trials}"] if trials is not None else []
    given += [f"tune.hours={hours}"] if hours is not None else []
    opened = open_project(project, overrides=given)
    found = find_splits(opened, run)

    from components.common.layout import project_store
    from components.tune.patch import patch, write_patch
    from components.tune.tuning import Asked, page_of
    from components.tune.tuning import tune as search
    from components.tune.worth import worth

    asked = Asked(
        opened, project_store(opened), found.splits, found.run,
        batch_size=batch_size, holdout=holdout,
    )  # fmt: skip
    with show_tune.progress(opened.settings.tune.trials) as (on_trial, say):
        figures = search(asked, on_trial=on_trial, say=say)
    page, words = page_of(asked, figures), patch(figures)
    written = apply and worth(figures)
    if written:
        write_patch(opened, figures.changes)
    show_tune.result(figures, page, words, applied=written, as_json=as_json)
    if apply and not written:
        raise StoppedByGate(
            "nothing was written into evertrain.yaml: no winner is shown to be better than the "
            "settings as they are",
            hint=f"search on with --trials above {opened.settings.tune.trials}, or write the "
            "patch into it by hand",
        )
