"""How the files of a project are written: from templates, names and values quoted as each needs."""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

_WIDTH = 100


def write_files(folder: Path, content: Mapping[str, str]) -> list[Path]:
    """Write files by name, in their order, each whole or not at all; return them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in content.items():
        unfinished = folder / f".{name}.{os.getpid()}.unfinished"
        try:
            unfinished.write_text(text, encoding="utf-8")
            os.replace(unfinished, folder / name)
        finally:
            unfinished.unlink(missing_ok=True)
    return [folder / name for name in content]


def project_name(folder: Path) -> str:
    """The folder's name as a project's name may be."""
    name = re.sub(r"[^a-z0-9_-]+", "-", folder.resolve().name.lower()).strip("-_")
    return name or "project"


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


def wrapped(words: str) -> str:
    """A sentence on lines of the usual width; what begins with a dash is a list."""
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


def rendered(templates: Path, file: str, said: Mapping[str, Any]) -> str:
    """Fill in `FILE.jinja` of a folder of templates; a name that nobody said is an error."""
    environment = Environment(  # noqa: S701 (nothing here is HTML)
        loader=FileSystemLoader(templates),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters: dict[str, Callable[..., str]] = {
        "shown": shown, "literal": literal, "scalar": scalar, "comment": _comment,
        "wrapped": wrapped, "constant": _constant,
    }  # fmt: skip
    environment.filters.update(filters)
    return environment.get_template(f"{file}.jinja").render(said)
