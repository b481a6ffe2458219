"""`evertrain new`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines import show
from pipelines.arguments import JsonOption
from pipelines.new.template import Template


def new(
    folder: Annotated[Path, typer.Argument(help="Folder to write; made if missing, else empty.")],
    template: Annotated[
        Template, typer.Option(help="What its rows are; tabular: as init proposes it.")
    ] = Template.TABULAR,
    as_json: JsonOption = False,
) -> None:
    """Write a whole project to start from, with data that it makes itself: it runs at once."""
    from pipelines.new.start import start

    made = start(folder, template)
    said = {
        "project": str(made.folder),
        "template": str(made.template),
        "files": [str(file) for file in made.files],
        "data": [str(file) for file in made.data],
    }
    lines = [
        f"wrote {made.folder}: {', '.join(file.name for file in made.files)}",
        f"made  {len(made.data)} files of data; {made.folder}/README.md says how to bring your own",
        f"next: evertrain run {made.folder}",
    ]
    show.lines(said, lines, as_json=as_json)
