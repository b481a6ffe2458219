"""The `evertrain` command line. stdout is data, stderr is talk.

Exit codes: 0 finished (promoted or held), 1 stopped by a gate or failed training, 2 wrong usage or
configuration, 3 the world outside failed, 130 interrupted.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from components.common.project import open_project
from components.common.settings import ProjectSettings
from infra.errors import OutsideError
from pipelines import (
    cluster_commands,
    lease_commands,
    model_commands,
    new_command,
    profile_commands,
    schedule_commands,
    show,
    tune_command,
    watch_command,
)
from pipelines.arguments import JsonOption, ProjectArgument, ProjectOption, SetOption
from pipelines.runners import ImageOption, MemoryOption, Runner, RunnerOption, chosen_runner
from training_core.errors import ConfigurationError, EvertrainError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Keep a PyTorch model fresh: validate, train, compare, promote or hold, and say why.",
    epilog="--debug, anywhere, shows the traceback of an error.",
)
app.command()(schedule_commands.backtest)
app.command()(schedule_commands.advise)
app.command()(cluster_commands.deploy)
app.command()(watch_command.watch)
app.command()(tune_command.tune)


@app.command()
def init(
    data: Annotated[str, typer.Argument(help="Folder or s3://bucket/prefix.")],
    label: Annotated[
        str, typer.Option(metavar="COLUMN", help="The binary column to predict.")
    ] = "",
    project: Annotated[Path, typer.Option(help="Folder to write; made if missing.")] = Path(
        "project"
    ),
    time: Annotated[
        str, typer.Option(metavar="COLUMN", help="When a row came to be; none: there is none.")
    ] = "",
    key: Annotated[
        str, typer.Option(metavar="COLUMN,…", help="Columns that together name one row.")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Take the proposals; ask nothing.")] = False,
    force: Annotated[bool, typer.Option(help="Overwrite the files of an earlier init.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a project for some data: task, settings and suite, proposed from a sample."""
    from pipelines.init.asking import Asking, on_a_terminal
    from pipelines.init.proposal import Given
    from pipelines.init.start import start

    asking = Asking(take_proposals=yes, ask=show.ask if on_a_terminal() and not yes else None)
    given = Given(label=label, time=time, key=key, asking=asking)
    show.proposal(start(data, folder=project, given=given, force=force), as_json=as_json)


app.command()(new_command.new)


@app.command()
def run(
    project: ProjectArgument,
    data: Annotated[str, typer.Option(help="Data URI instead of data.source.")] = "",
    settings: SetOption = None,
    force: Annotated[bool, typer.Option(help="Train even if nothing is new.")] = False,
    runner: RunnerOption = Runner.PROCESS,
    image: ImageOption = "",
    memory: MemoryOption = "",
    as_json: JsonOption = False,
) -> None:
    """Run the whole pipeline on this machine; skipped, or queued, while another run works."""
    overrides = settings or []
    opened = open_project(project, overrides=overrides, data=data)
    steps = chosen_runner(opened, runner, image=image, memory=memory)

    from components.common.runnable import runnable_task  # torch: four seconds on a busy machine
    from components.train_distributed.starters import refuse_nodes_of_nobody
    from pipelines.local import run_locally

    runnable_task(opened)  # what no run could end well with is found before one is started
    refuse_nodes_of_nobody(opened)
    model_commands.mend(opened)
    with show.progress() as on_step:
        record = run_locally(
            opened,
            data=data,
            overrides=overrides,
            force=force,
            on_step=on_step,
            on_wait=show.waits,
            runner=steps,
        )
    show.run(opened, record, as_json=as_json)
    raise typer.Exit(record.exit_code)


@app.command()
def check(
    project: Annotated[
        Path | None, typer.Argument(help="Folder of the project (it holds evertrain.yaml).")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Make this check alone; may be repeated."),
    ] = None,
    data: Annotated[str, typer.Option(help="Data URI instead of data.source.")] = "",
    settings: SetOption = None,
    page: Annotated[bool, typer.Option("--page", help="Write a page of what they saw.")] = False,
    list_: Annotated[
        bool, typer.Option("--list", help="Say which checks there are, and make none.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Make the sanity checks of the training code, without training: silent bugs, in minutes."""
    from components.check_training.step import stop_if_broken
    from pipelines import check as checks
    from pipelines import show_checks

    if project is None and not list_:
        raise ConfigurationError(
            "no project is named", hint="evertrain check PROJECT, or evertrain check --list"
        )
    opened = open_project(project, overrides=settings, data=data) if project is not None else None
    if opened is None or list_:
        show_checks.catalogue(checks.checks_of_project(opened), as_json=as_json)
        return
    names = checks.planned_checks(opened, only or [])
    with show_checks.progress(names) as on_finding:
        found = checks.check(opened, only=only or [], page=page, on_finding=on_finding)
    show_checks.result(found, as_json=as_json)
    stop_if_broken(found.figures)


@app.command(name="compile")
def compile_(
    project: ProjectArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.")],
    project_in_image: Annotated[
        str, typer.Option(help="Folder of the project inside the image.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Compile the pipeline to IR YAML for Kubeflow."""
    from components.common.image import IMAGE
    from pipelines.compiling import compile_pipeline
    from pipelines.placing import placing

    opened = open_project(project)
    folder = project_in_image or project.as_posix()
    compile_pipeline(
        output,
        parameters={"project": folder, "store": opened.settings.store},
        place=placing(opened.settings),
        tuned=opened.settings.tune.in_pipeline,
        refitted=opened.settings.refit.enabled,
    )
    image = opened.settings.cluster.image or IMAGE
    said = {"file": str(output), "image": image, "project": folder}
    show.lines(said, [f"compiled {output} (image {image})"], as_json=as_json)


profile_commands.add_to(app)
model_commands.add_to(app)
app.command()(lease_commands.lease)


@app.command()
def report(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="A run's id; see evertrain runs.")],
    project: ProjectOption = Path(),
    as_json: JsonOption = False,
) -> None:
    """Write a run's report again and say where it is."""
    from pipelines.runs import rewrite

    opened = open_project(project)
    record, path = rewrite(opened, run_id)
    show.lines(record.model_dump(mode="json"), [path], as_json=as_json)


@app.command()
def data(
    project: ProjectArgument,
    run_id: Annotated[
        str, typer.Option("--run", metavar="RUN", help="A run's id; default: the newest.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Write the page of a run's data (what came, changed, was set aside) and say where it is."""
    from pipelines.data import write_page

    show.data(write_page(open_project(project), run_id), as_json=as_json)


@app.command()
def runs(project: ProjectArgument, as_json: JsonOption = False) -> None:
    """List the runs of a project, the newest last."""
    from pipelines.runs import all_runs

    show.runs(all_runs(open_project(project)), as_json=as_json)


@app.command()
def alerts(
    project: ProjectArgument,
    test: Annotated[
        bool, typer.Option("--test", help="Send a test alert by every channel.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show who is told of the end of a run, or try it out."""
    from pipelines.alerts import look, try_out

    opened = open_project(project)
    channels = try_out(opened) if test else look(opened)
    show.channels(channels, as_json=as_json)
    raise typer.Exit(max((c.exit_code for c in channels), default=0))


@app.command()
def schema() -> None:
    """Print the JSON Schema of evertrain.yaml."""
    print(json.dumps(ProjectSettings.model_json_schema(), indent=2))


@app.command()
def doctor(
    project: Annotated[Path | None, typer.Argument(help="Folder of a project.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check what a run needs: packages, the project, its data, store and registry."""
    from pipelines.doctor import examine

    findings = examine(project)
    show.findings(findings, as_json=as_json)
    raise typer.Exit(max(f.exit_code for f in findings))


def main() -> None:
    """Entry point: errors in words, exit codes with meaning."""
    arguments = sys.argv[1:]
    debug = "--debug" in arguments
    if debug:
        arguments = [argument for argument in arguments if argument != "--debug"]
    code = 1
    try:
        code = app(arguments, standalone_mode=False) or 0
    except (EvertrainError, OutsideError) as error:
        if debug:
            raise
        show.error(str(error))
        code = error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except Exception as error:
        if debug:
            raise
        code = show.unexpected(error)
    if code == 130:  # typer itself turns Ctrl-C into this code, without a word
        show.error("interrupted\n\nhint: run the same command again: it goes on from there")
    sys.stdout.flush()
    sys.exit(code)


if __name__ == "__main__":
    main()
