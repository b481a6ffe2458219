"""The command lines that the documentation shows, as a reader would copy them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = "docs/tutorial.md"
LIST = "docs/tested_commands.md"

_FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_SHELL = ("", "sh", "console")
_PROGRAMS = r"(?:evertrain|make|python3?|kubectl|docker|kind|aws)"
_LINE = re.compile(rf"^(?:[A-Z_]+=\S+ )*{_PROGRAMS}(?: |$)")
_INLINE = re.compile(rf"`({_PROGRAMS} [^`]+)`")
_SYNOPSIS = re.compile(rf"^    ({_PROGRAMS} [^\n]+)$", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """A command of the tutorial, and the lines that it shows."""

    command: str
    shown: tuple[str, ...]


def pages() -> dict[str, str]:
    """Return every page of the repository, by its path."""
    found = {}
    for page in sorted(ROOT.rglob("*.md")):
        parts = page.relative_to(ROOT).parts
        if not any(part.startswith(".") or part == "build" for part in parts):
            found["/".join(parts)] = page.read_text()
    return found


def fenced(markdown: str) -> list[str]:
    """Return the command lines in a page's blocks: without comments, prompts and `&&`.

    Raises:
        ValueError: A block of shell holds a line that is no command known here.
    """
    found = []
    for block in _FENCE.finditer(markdown):
        kind, text = block.group(2), block.group(3).replace("\\\n", " ")
        if kind not in _SHELL:
            continue
        for line in text.splitlines():
            if kind == "console":
                if not line.startswith("$ "):
                    continue
                line = line[2:]
            for command in commands_of(line):
                if _LINE.match(command):
                    found.append(command)
                elif kind == "sh" and not command.startswith((". ", "echo ")):
                    raise ValueError(f"no command that is known: {command!r}")
    return found


def inline(markdown: str) -> list[str]:
    """Return the commands that sentences name, and synopses: they may leave arguments out."""
    prose = _FENCE.sub("", markdown)
    return [*_INLINE.findall(prose), *_SYNOPSIS.findall(prose)]


def commands_of(line: str) -> list[str]:
    """Return a line's commands: without its comment, and divided at `&&`."""
    bare = re.sub(r"(?:^|\s+)#.*$", "", line)
    return [" ".join(part.split()) for part in bare.split("&&") if part.strip()]


def tutorial() -> list[Step]:
    """Return the tutorial's commands in their order, with what the page shows of each."""
    steps: list[Step] = []
    for block in _FENCE.finditer((ROOT / TUTORIAL).read_text()):
        if block.group(2) != "console":
            continue
        for part in re.split(r"^\$ ", block.group(3), flags=re.MULTILINE)[1:]:
            command, *shown = part.splitlines()
            steps.append(Step(command, tuple(line for line in shown if line.strip())))
    return steps


def listed() -> dict[str, dict[str, str]]:
    """Return the lists of the page of tested commands: by section, each command and its remark."""
    found: dict[str, dict[str, str]] = {}
    section = ""
    for line in (ROOT / LIST).read_text().splitlines():
        if line.startswith("## "):
            section = line[3:].strip()
            found[section] = {}
        elif entry := re.match(r"- `([^`]+)`(.*)$", line):
            if entry.group(1) in found[section]:
                raise ValueError(f"listed twice: {entry.group(1)}")
            found[section][entry.group(1)] = entry.group(2).strip()
    return found
