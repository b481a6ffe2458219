"""The command that starts runs by itself: `watch`."""

from __future__ import annotations

from typing import Annotated

import typer

from components.common.project import open_project
from pipelines.arguments import ProjectArgument, SetOption


def watch(
    project: ProjectArgument,
    host: Annotated[
        str,
        typer.Option(
            help="Of Kubeflow, which runs are started on; default: cluster.host, "
            "KF_PIPELINES_ENDPOINT, else this machine."
        ),
    ] = "",
    once: Annotated[
        bool, typer.Option("--once", help="Look, start a run if one is due, and end.")
    ] = False,
    listen: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT", help="Answer there: /healthz, /readyz, /metrics; default: nowhere."
        ),
    ] = "",
    data: Annotated[str, typer.Option(help="Data URI instead of data.source.")] = "",
    settings: SetOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a line on stdout.")
    ] = False,
) -> None:
    """Start a run when data lands, when drift or decay ask for one, or when a schedule is due."""
    from pipelines.watch.command import Asked, start_watching

    opened = open_project(project, overrides=settings, data=data)
    asked = Asked(host=host, once=once, listen=listen, data=data, as_json=as_json)
    raise typer.Exit(start_watching(opened, asked))
