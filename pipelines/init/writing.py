"""The files of the project."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from components.common.project import FILE_NAME
from pipelines.init.first_looks import check_first
from pipelines.init.proposal import Proposal
from pipelines.init.rendering import literal, project_name, rendered, shown, wrapped, write_files
from pipelines.init.suite import suite_of
from training_core.errors import ConfigurationError

TASK, SUITE, README = "task.py", "expectations.json", "README.md"
FILES = (TASK, SUITE, README, FILE_NAME)  # the settings last: with them it is a project
_TEMPLATES = Path(__file__).with_name("templates")


def refuse_to_overwrite(folder: Path, *, force: bool) -> None:
    """Stop before anything is read.

    Raises:
        ConfigurationError: A file that would be written is there, or the folder is a file.
    """
    there = [name for name in FILES if (folder / name).exists()]
    if there and not force:
        raise ConfigurationError(
            f"{folder} already holds {', '.join(there)}",
            hint="name another folder with --project, or pass --force to write them anew",
        )
    if folder.exists() and not folder.is_dir():
        raise ConfigurationError(f"{folder} is no folder", hint="name another with --project")


def write_project(proposal: Proposal, folder: Path, *, script: str = "") -> list[Path]:
    """Write the project's files, each whole or not at all; return them.

    Args:
        proposal: All that was decided.
        folder: Of the project.
        script: A file in it that made the data, if one did: the README names it.
    """
    name = project_name(folder)
    said = {**_words(proposal, folder, name), "script": script}
    content = {
        TASK: rendered(_TEMPLATES, TASK, said),
        SUITE: json.dumps(suite_of(proposal, name=name), indent=2, ensure_ascii=False) + "\n",
        README: rendered(_TEMPLATES, README, said),
        FILE_NAME: rendered(_TEMPLATES, FILE_NAME, said),
    }
    return write_files(folder, content)


def _words(proposal: Proposal, folder: Path, name: str) -> dict[str, Any]:
    label, source = proposal.label, proposal.sample.source
    inferred = source.ending != ".parquet"
    used = {*proposal.key, proposal.time, label.name, *proposal.features.used}
    return {
        "name": name,
        "sample": proposal.sample,
        "source": source.uri
        if "://" in source.uri
        else Path(os.path.relpath(source.uri, folder.resolve())).as_posix(),
        "label": label,
        "key": proposal.key,
        "key_why": proposal.key_why[0].upper() + proposal.key_why[1:] + ".",
        "time": proposal.time,
        "time_why": proposal.time_why[0].upper() + proposal.time_why[1:] + ".",
        "types": {c: t for c, t in proposal.sample.types.items() if c in used} if inferred else {},
        "split": proposal.split,
        "sizes": proposal.sizes,
        "features": proposal.features,
        "both_said": dict.fromkeys(
            proposal.features.both, "once more: neighbours are alike, which embeddings do not know"
        ),
        "left_out": proposal.features.left_out,
        "read": f"Proposed by `evertrain init` from {proposal.sample.rows:,} rows of "
        f"{len(proposal.sample.read)} of {len(source.objects)} objects; change what you know "
        "better. Every key: `evertrain schema`.",
        "title": wrapped(f"{_meaning(proposal)} Embeddings and numbers into a small network."),
        "meaning": _meaning(proposal),
        "mapping": f"{{{literal(label.negative)}: 0.0, {literal(label.positive)}: 1.0}}",
        "check_first": [" ".join(point.split()) for point in check_first(proposal)],
    }


def _meaning(proposal: Proposal) -> str:
    value = proposal.label.positive
    said = f"{value:g}" if isinstance(value, float) else shown(value)
    return f"Whether {shown(proposal.label.name)} is {said}."
