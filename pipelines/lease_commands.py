"""`evertrain lease`: who has it, and how to free it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from components.common.project import open_project
from components.common.promotion import user_name
from pipelines import show
from pipelines.arguments import JsonOption, ProjectArgument
from training_core.errors import ConfigurationError, StoppedByGate

if TYPE_CHECKING:
    from pipelines.lease import LeaseState

_MEANING = (
    "Freeing it lets another run start now. The run that has it, should it live after all, stops "
    "at its next sign of life and promotes nothing; what it has computed since its last checkpoint "
    "is lost. The lease of a run that is dead ends by itself."
)


def lease(
    project: ProjectArgument,
    break_: Annotated[
        bool, typer.Option("--break", help="Free it, whoever has it; asks on a terminal.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --break: do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show which run is under way, since when, and when its lease ends; or free it."""
    from pipelines.lease import free, look

    opened = open_project(project)
    state = look(opened)
    if break_ and not state.free and _is_sure(state, yes=yes):
        if not free(opened, state, who=user_name()):
            raise StoppedByGate(
                "the lease changed while you looked at it, and was left as it is",
                hint=f"look again: evertrain lease {project}",
            )
        state = look(opened)
    show.lines(state.as_data(), _lines(state), as_json=as_json)


def _is_sure(state: LeaseState, *, yes: bool) -> bool:
    from pipelines.init.asking import on_a_terminal

    show.TALK.print(f"{state.words}\n{_MEANING}", markup=False, soft_wrap=True)
    if yes:
        return True
    if not on_a_terminal():
        raise ConfigurationError(
            "there is no terminal to ask on whether to free the lease",
            hint="give --yes if you are sure",
        )
    return show.ask("free it? (yes/no)", "no").lower() in ("y", "yes")


def _lines(state: LeaseState) -> list[str]:
    lines = [state.words]
    if state.seen is not None and not state.free:
        record = state.seen.record
        lines += [
            f"sign of life: {state.seen.age:.0f} s ago",
            f"ends:         in {state.seen.expires_in:.0f} s, if none comes",
            f"token:        {record.token}",
        ]
    return lines
