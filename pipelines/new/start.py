"""The whole command: write a project of a kind into an empty folder, and make its data."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from components.common.project import FILE_NAME, open_project
from pipelines.init.asking import Asking
from pipelines.init.proposal import Given
from pipelines.init.rendering import project_name, rendered, write_files
from pipelines.init.start import start as propose_project
from pipelines.new.template import Template
from training_core.errors import ConfigurationError

DATA, SCRIPT = "data", "make_data.py"
_TEMPLATES = Path(__file__).with_name("templates")
_TABULAR_LABEL = "bought"  # of the table that its script makes


@dataclass(frozen=True)
class New:
    """A project that was written.

    Attributes:
        data: Files that its script made.
    """

    folder: Path
    template: Template
    files: list[Path]
    data: list[Path]


def start(folder: Path, template: Template) -> New:
    """Write a whole project, data included; if that fails, leave the folder as it was.

    Raises:
        ConfigurationError: The folder is not empty, or is none.
    """
    folder = folder.expanduser().absolute()
    _refuse(folder)
    was_there = folder.exists()
    try:
        files, data = _written(folder, template)
        open_project(folder)  # what was written is read as any project is
    except BaseException:  # an interrupted one too: half a project would be in the next one's way
        _clear(folder, keep=was_there)
        raise
    return New(folder, template, files, data)


def _refuse(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise ConfigurationError(f"{folder} is no folder", hint="name another")
    there = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    if there:
        more = f" and {len(there) - 3} more" if len(there) > 3 else ""
        raise ConfigurationError(
            f"{folder} is not empty: it holds {', '.join(there[:3])}{more}",
            hint="name another folder; for a project from data that is there: evertrain init DATA "
            "--label COLUMN",
        )


def _written(folder: Path, template: Template) -> tuple[list[Path], list[Path]]:
    said = {"name": project_name(folder)}
    found = sorted(path.name.removesuffix(".jinja") for path in (_TEMPLATES / template).iterdir())
    # The settings last: with them it is a project.
    names = sorted(found, key=lambda name: name == FILE_NAME)
    files = write_files(
        folder, {name: rendered(_TEMPLATES, f"{template}/{name}", said) for name in names}
    )
    data = _made(folder)
    if template is Template.TABULAR:  # all the rest is what init makes of that data
        given = Given(label=_TABULAR_LABEL, asking=Asking(take_proposals=True))
        files += propose_project(
            str(folder / DATA), folder=folder, given=given, script=SCRIPT
        ).files
    return files, data


def _made(folder: Path) -> list[Path]:
    """Run the project's own script: what it says it does is what was done."""
    words = [sys.executable, str(folder / SCRIPT), "--data", str(folder / DATA)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or ["without a word"])[-1]
        raise ConfigurationError(
            f"{SCRIPT} ended with {ended.returncode}: {last}",
            hint=f"is there room for files in {folder}?",
        )
    return [Path(line) for line in ended.stdout.splitlines()]


def _clear(folder: Path, *, keep: bool) -> None:
    """Take away what was written into a folder that was empty, or was not there."""
    shutil.rmtree(folder, ignore_errors=True)
    if keep:
        folder.mkdir(exist_ok=True)
