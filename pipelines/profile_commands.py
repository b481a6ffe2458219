"""`evertrain profile`, `evertrain lr` and `evertrain batch-size`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from components.common.project import open_project
from pipelines import show
from pipelines.arguments import JsonOption, ProjectArgument, SetOption

if TYPE_CHECKING:
    from pipelines.profiling.running import Say

DataOption = Annotated[str, typer.Option(help="Data URI instead of data.source.")]


def profile(
    project: ProjectArgument,
    try_: Annotated[
        bool, typer.Option("--try", help="Try each advised setting, and measure it.")
    ] = False,
    price: Annotated[
        float, typer.Option(help="Of an hour; default: training.stopping.price_per_hour.", min=0)
    ] = 0.0,
    data: DataOption = "",
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say where a training's time goes, what to try, and what the whole run would cost."""
    opened = open_project(project, overrides=settings, data=data)

    from pipelines.profiling.running import profile_project  # jinja2 and pictures

    with _progress() as say:
        said = profile_project(opened, trying=try_, price=price, say=say)
    show.lines(said.data, said.lines, as_json=as_json)


def lr(
    project: ProjectArgument,
    steps: Annotated[int, typer.Option(help="Of the sweep; default: 150.", min=0)] = 0,
    low: Annotated[
        float, typer.Option("--from", help="First rate; default: 0.000001.", min=0)
    ] = 0.0,
    high: Annotated[float, typer.Option("--to", help="Last rate; default: 10.", min=0)] = 0.0,
    data: DataOption = "",
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Propose a learning rate: a range test on the real network, then short trainings."""
    opened = open_project(project, overrides=settings, data=data)

    from pipelines.profiling.running import sweep_project

    with _progress() as say:
        said = sweep_project(opened, steps=steps, low=low, high=high, say=say)
    show.lines(said.data, said.lines, as_json=as_json)


def batch_size(
    project: ProjectArgument,
    noise: Annotated[bool, typer.Option(help="Measure the gradient noise scale as well.")] = True,
    data: DataOption = "",
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Propose a batch size: what fits, what is fast, what the gradient has a use for."""
    opened = open_project(project, overrides=settings, data=data)

    from pipelines.profiling.running import batch_sizes_of_project

    with _progress() as say:
        said = batch_sizes_of_project(opened, noise=noise, say=say)
    show.lines(said.data, said.lines, as_json=as_json)


@contextmanager
def _progress() -> Iterator[Say]:
    """A spinner on a terminal, else nothing."""
    with show.TALK.status("reading the data") as status:
        yield lambda words: status.update(Text(words))


def add_to(app: typer.Typer) -> None:
    """Give the application these commands."""
    app.command()(profile)
    app.command()(lr)
    app.command(name="batch-size")(batch_size)
