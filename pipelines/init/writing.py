"""The files of the project."""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from components.common.project import FILE_NAME
from pipelines.init.first_looks import check_first
from pipelines.init.proposal import Proposal
from pipelines.init.suite import suite_of
from training_core.errors import ConfigurationError

TASK, SUITE, README = "task.py", "expectations.json", "README.md"
FILES = (TASK, SUITE, README, FILE_NAME)  # the settings last: with them it is a project
_WIDTH = 100
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


def write_project(proposal: Proposal, folder: Path) -> list[Path]:
    """Write the project's files, each whole or not at all; return them."""
    folder.mkdir(parents=True, exist_ok=True)
    name = project_name(folder)
    said = _words(proposal, folder, name)
    content = {
        TASK: _rendered(TASK, said),
        SUITE: json.dumps(suite_of(proposal, name=name), indent=2, ensure_ascii=False) + "\n",
        README: _rendered(README, said),
        FILE_NAME: _rendered(FILE_NAME, said),
    }
    for file in FILES:
        unfinished = folder / f".{file}.{os.getpid()}.unfinished"
        try:
            unfinished.write_text(content[file], encoding="utf-8")
            os.replace(unfinished, folder / file)
        finally:
            unfinished.unlink(missing_ok=True)
    return [folder / file for file in FILES]


def project_name(folder: Path) -> str:
    """The folder's name as a project's name may be."""
    name = re.sub(r"[^a-z0-9_-]+", "-", folder.resolve().name.lower()).strip("-_")
    return name or "project"


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
        "title": _wrapped(f"{_meaning(proposal)} Embeddings and numbers into a small network."),
        "meaning": _meaning(proposal),
        "mapping": f"{{{literal(label.negative)}: 0.0, {literal(label.positive)}: 1.0}}",
        "check_first": [" ".join(point.split()) for point in check_first(proposal)],
    }


def _meaning(proposal: Proposal) -> str:
    value = proposal.label.positive
    said = f"{value:g}" if isinstance(value, float) else shown(value)
    return f"Whether {shown(proposal.label.name)} is {said}."


# --- how names and values are written -------------------------------------------------------------


def shown(value: object) -> str:
    """A name or value in a comment or sentence: on one line, whatever it holds."""
    words = str(value)
    if not words.isprintable() or words != words.strip() or not words:
        return json.dumps(words)
    return words.replace("\\", "/").replace('"', "'")


def literal(value: object) -> str:
    """A value in Python, quoted as ruff would."""
    if not isinstance(value, str):
        return repr(value)
    if value.isprintable() and '"' in value and "'" not in value and "\\" not in value:
        return f"'{value}'"
    return json.dumps(value, ensure_ascii=not value.isprintable())


def scalar(value: str) -> str:
    """A text in YAML, quoted only where it has to be."""
    plain = re.fullmatch(r"[\w./*:-]+", value, re.ASCII) and not re.match(r"[*:-]", value)
    if plain and not value.endswith(":") and yaml.safe_load(value) == value:
        return value
    return json.dumps(value)


def _comment(words: str, indent: int) -> str:
    margin = " " * indent + "# "
    return textwrap.fill(
        " ".join(words.split()), _WIDTH, initial_indent=margin, subsequent_indent=margin,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _wrapped(words: str) -> str:
    return textwrap.fill(
        words, _WIDTH, subsequent_indent="  " if words.startswith("- ") else "",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _constant(name: str, values: Sequence[str], said: dict[str, str]) -> str:
    """A list of texts, on one line if it fits and nothing is said of them."""
    written = [literal(value) for value in values]
    typed = f"{name}: list[str]" if not values else name
    line = f"{typed} = [{', '.join(written)}]"
    if len(line) <= _WIDTH and not any(v in said for v in values):
        return line
    lines = [
        f"    {text}," + (f"  # {said[value]}" if value in said else "")
        for value, text in zip(values, written, strict=True)
    ]
    return "\n".join([f"{name} = [", *lines, "]"])


def _rendered(file: str, said: dict[str, Any]) -> str:
    environment = Environment(  # noqa: S701 (nothing here is HTML)
        loader=FileSystemLoader(_TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters: dict[str, Callable[..., str]] = {
        "shown": shown, "literal": literal, "scalar": scalar, "comment": _comment,
        "wrapped": _wrapped, "constant": _constant,
    }  # fmt: skip
    environment.filters.update(filters)
    return environment.get_template(f"{file}.jinja").render(said)
