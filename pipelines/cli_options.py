"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ProjectArgument = Annotated[
    Path, typer.Argument(help="Folder of the project (it holds evertrain.yaml).")
]
ProjectOption = Annotated[Path, typer.Option("--project", help="Folder of the project.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a setting; may be repeated."),
]
