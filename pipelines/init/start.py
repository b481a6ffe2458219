"""The whole command: read a sample, decide, write the project."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from components.common.project import open_project
from pipelines.init.proposal import Given, Proposal, propose
from pipelines.init.sample import find_source, open_sample
from pipelines.init.writing import refuse_to_overwrite, write_project


@dataclass(frozen=True)
class Written:
    """A project and what it was written from."""

    folder: Path
    files: list[Path]
    proposal: Proposal


def start(
    data: str, *, folder: Path, given: Given, force: bool = False, script: str = ""
) -> Written:
    """Write a project for the data, which a script in the folder may have made.

    Raises:
        ConfigurationError: There is a project already, or something given is wrong or missing.
        StoppedByGate: The data cannot be read or learned from.
        OutsideError: The store cannot be reached.
    """
    folder = folder.expanduser().absolute()
    refuse_to_overwrite(folder, force=force)
    with open_sample(find_source(data)) as sample:
        proposal = propose(sample, given)
        files = write_project(proposal, folder, script=script)
    open_project(folder)  # what was written is read as any project is
    return Written(folder, files, proposal)
