"""The command that brings a project to a cluster: `deploy`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from components.common.project import open_project
from pipelines import show
from pipelines.arguments import JsonOption, ProjectArgument, SetOption
from training_core.errors import ConfigurationError

if TYPE_CHECKING:
    from infra.kubeflow import Version
    from pipelines.deploy.deploying import Prepared
    from pipelines.deploy.follow import Outcome

_DAY = 24 * 3600.0


def deploy(
    project: ProjectArgument,
    host: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Of Kubeflow; default: cluster.host, or KF_PIPELINES_ENDPOINT."
        ),
    ] = "",
    namespace: Annotated[
        str, typer.Option(metavar="NAME", help="Of the profile; default: cluster.namespace.")
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan, and change nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do what the plan says; ask nothing.")] = False,
    run: Annotated[bool, typer.Option("--run", help="Start a run afterwards.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Follow that run to its end; the exit code is the run's.")
    ] = False,
    timeout: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="--wait: how long at most.")
    ] = _DAY,
    poll: Annotated[
        float, typer.Option(min=0.05, metavar="SECONDS", help="--wait: between two looks.")
    ] = 5.0,
    settings: SetOption = None,
    force: Annotated[bool, typer.Option(help="--run: train even if nothing is new.")] = False,
    allow_tag: Annotated[
        bool, typer.Option("--allow-tag", help="Take an image that is not named by its digest.")
    ] = False,
    remove: Annotated[
        bool, typer.Option("--remove", help="Take the project's schedules away instead.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Bring the pipeline and its schedules to Kubeflow: shows a plan, asks, then does it."""
    from pipelines import show_deploy
    from pipelines.deploy.deploying import carry_out, prepare

    run = run or wait
    _consistent(run=run, remove=remove, settings=settings or [], force=force)
    opened = open_project(project)
    open_project(project, overrides=settings)  # what the run is given has to be right as well
    with tempfile.TemporaryDirectory(prefix="evertrain-deploy-") as folder:
        prepared = prepare(
            opened, Path(folder), host=host, namespace=namespace,
            allow_tag=allow_tag, remove=remove,
        )  # fmt: skip
        show_deploy.plan(prepared, as_json=as_json)
        go = not dry_run and (not prepared.plan.to_do or yes or _agreed(prepared))
        version = carry_out(prepared, show_deploy.done) if go else None
    started, ended = "", None
    if go and run and version is not None:
        started, ended = _run(
            prepared, version, settings or [], force=force, wait=wait, timeout=timeout, poll=poll
        )
    show_deploy.result(prepared, applied=go, run=started, outcome=ended, as_json=as_json)
    raise typer.Exit(ended.exit_code if ended else 0)


def _consistent(*, run: bool, remove: bool, settings: list[str], force: bool) -> None:
    if remove and run:
        raise ConfigurationError("--remove starts no run", hint="leave --run and --wait out")
    if (settings or force) and not run:
        raise ConfigurationError(
            "--set and --force are for the run that --run starts",
            hint="add --run; what schedules are given is in evertrain.yaml: schedules",
        )


def _agreed(prepared: Prepared) -> bool:
    """Ask on a terminal.

    Raises:
        ConfigurationError: There is none to ask on.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigurationError(
            "there is no terminal to ask on, and nothing was changed",
            hint="evertrain deploy PROJECT --yes does what the plan says, --dry-run shows it",
        )
    if show.ask("Do this? yes or no", "no").lower() in ("y", "yes"):
        return True
    show.TALK.print("nothing was changed")
    return False


def _run(
    prepared: Prepared,
    version: Version,
    settings: list[str],
    *,
    force: bool,
    wait: bool,
    timeout: float,
    poll: float,
) -> tuple[str, Outcome | None]:
    from components.common.layout import project_store
    from pipelines import show_deploy
    from pipelines.deploy.follow import Follower, outcome, start

    kubeflow, project = prepared.kubeflow, prepared.project
    run = start(project, version, kubeflow=kubeflow, overrides=settings, force=force)
    show_deploy.done(f"started the run {run}: {kubeflow.page_of(run)}")
    if not wait or prepared.package is None:
        return run, None
    store = project_store(project, prepared.package.store)
    follower = Follower(
        kubeflow,
        store,
        on_state=show_deploy.state,
        on_line=show_deploy.log_line,
        on_trouble=lambda why: show_deploy.no_logs(why, run, kubeflow.namespace),
        poll=poll,
    )
    try:
        ended = follower.follow(run, timeout=timeout)
    except KeyboardInterrupt:
        show_deploy.done(f"the run {run} goes on in Kubeflow")
        raise
    return run, outcome(store, ended)
