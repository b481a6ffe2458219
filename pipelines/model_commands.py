"""The commands about the champion: who it is and why, approving, rejecting, going back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from components.common.project import open_project
from infra.errors import OutsideError
from pipelines import show
from pipelines.arguments import JsonOption, ProjectArgument

if TYPE_CHECKING:
    from components.common.champion import PromotionEntry
    from components.common.project import Project

VersionOption = Annotated[
    str, typer.Option(metavar="VERSION", help="What was proposed; default: the newest proposal.")
]
ReasonOption = Annotated[str, typer.Option(help="Why; kept in the log.")]


def champion(project: ProjectArgument, as_json: JsonOption = False) -> None:
    """Show the model in production, the one before it, and what is proposed to follow."""
    from pipelines import show_models
    from pipelines.models import Models

    models = Models(open_project(project))
    show_models.champion(models.log.entries(), as_json=as_json)
    show_models.repaired(models.repair())


def history(project: ProjectArgument, as_json: JsonOption = False) -> None:
    """Show every promotion, proposal, approval, rejection and rollback, the newest last."""
    from pipelines import show_models
    from pipelines.models import Models

    models = Models(open_project(project))
    show_models.history(models.log.entries(), as_json=as_json)
    show_models.repaired(models.repair())


def approve(
    project: ProjectArgument,
    version: VersionOption = "",
    reason: ReasonOption = "",
    as_json: JsonOption = False,
) -> None:
    """Make what is proposed champion, once it has been rehearsed."""
    from pipelines.models import Models

    entry = Models(open_project(project)).approve(version, reason=reason)
    _say(entry, f"version {entry.version} is champion", as_json=as_json)


def reject(
    project: ProjectArgument,
    reason: Annotated[str, typer.Option(help="Why; kept in the log.")],
    version: VersionOption = "",
    as_json: JsonOption = False,
) -> None:
    """Turn down what is proposed; the champion stays."""
    from pipelines.models import Models

    entry = Models(open_project(project)).reject(version, reason=reason)
    _say(entry, f"version {entry.version} is rejected; the champion stays", as_json=as_json)


def rollback(
    project: ProjectArgument,
    to: Annotated[str, typer.Option(help="Version to go back to; default: the one before.")] = "",
    reason: ReasonOption = "",
    as_json: JsonOption = False,
) -> None:
    """Make an earlier version champion again, once it has been rehearsed."""
    from pipelines.models import Models

    entry = Models(open_project(project)).roll_back(to=to, reason=reason)
    _say(entry, f"version {entry.version} is champion again", as_json=as_json)


def mend(project: Project) -> None:
    """Make the aliases follow the log before a run; that they cannot be now is no reason not to."""
    from pipelines import show_models
    from pipelines.models import Models

    models = Models(project)
    try:
        show_models.repaired(models.repair())
    except OutsideError as error:
        show.TALK.print(f"the registry's aliases were not looked at: {error.what}", markup=False)


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for command in (champion, history, approve, reject, rollback):
        app.command()(command)


def _say(entry: PromotionEntry, words: str, *, as_json: bool) -> None:
    said = entry.model_dump(mode="json")
    show.lines(said, [f"{words} (entry {entry.number})"], as_json=as_json)
