"""Every command of `evertrain` as a page, from the parser that reads it."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, get_args

import typer

_HEAD = """# Every command

stdout is data, stderr is talk; `--json` prints one JSON object; `--debug`, anywhere, shows the \
traceback of an error. Exit codes: 0 finished (promoted, held, or nothing new), 1 stopped by a \
gate or failed training, 2 wrong usage or configuration, 3 the world outside failed (run the same \
again), 130 interrupted.

This page is written from the parser by `make docs`; `--help` behind a command says the same.
"""


def commands_page(app: typer.Typer) -> str:
    """Return the page of all commands of an application."""
    group: Any = typer.main.get_command(app)
    lines = [_HEAD]
    for name, command in sorted(group.commands.items()):
        lines += [
            f"## {name}",
            "",
            _words(command.help or ""),
            "",
            "```text",
            _usage(name, command),
            "```",
            "",
        ]
        rows = [row for each in command.params if (row := _row(each))]
        lines += ["| | type | usual | what |", "|---|---|---|---|", *rows, ""] if rows else []
    return "\n".join(lines).rstrip() + "\n"


def _usage(name: str, command: Any) -> str:
    words = ["evertrain", name]
    for each in command.params:
        if each.param_type_name == "argument":
            words.append(_name(each) if each.required else f"[{_name(each)}]")
        elif each.required:
            words.append(f"{each.opts[0]} {_value(each)}")
    return " ".join([*words, "[OPTIONS]"])


def _row(each: Any) -> str:
    if each.param_type_name == "argument":
        name = f"`{_name(each)}`"
    elif "--help" in each.opts:
        return ""
    else:
        flags = ", ".join(f"`{option}`" for option in [*each.opts, *each.secondary_opts])
        name = flags if each.is_flag else f"{flags} `{_value(each)}`"
    return f"| {name} | {_type(each)} | {_usual(each)} | {_cell(_words(each.help or ''))} |"


def _type(each: Any) -> str:
    """In words, from the annotation that the value is converted by."""
    if getattr(each, "is_flag", False):
        return "switch"
    kinds = [kind for kind in _kinds(each.type_descriptor.annotation) if kind is not NoneType]
    words = [_of_kind(kind) for kind in kinds]
    return " or ".join(words) + (", may be repeated" if each.multiple else "")


def _kinds(annotation: Any) -> list[Any]:
    """What an annotation is made of: `list[str] | None` of str and NoneType."""
    inside = get_args(annotation)
    return [kind for each in inside for kind in _kinds(each)] if inside else [annotation]


def _of_kind(kind: Any) -> str:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ", ".join(f"`{each.value}`" for each in kind)
    return {str: "text", int: "whole number", float: "number", Path: "path"}.get(kind, "text")


def _usual(each: Any) -> str:
    if each.required:
        return "must be given"
    default = each.default() if callable(each.default) else each.default
    if default in (None, "", False, [], ()) or "UNSET" in repr(default):
        return ""
    return f"`{getattr(default, 'value', default)}`"


def _name(each: Any) -> str:
    return str(each.metavar or each.name).upper().strip("[]")


def _value(each: Any) -> str:
    return str(each.metavar or each.name.upper().replace("_", "-"))


def _words(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
