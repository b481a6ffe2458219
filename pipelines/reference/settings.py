"""Every setting of `evertrain.yaml` as a page, from its JSON Schema.

The schema is all that this reads: what is on the page is what the code refuses and takes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]

_HEAD = """# Every setting

`evertrain.yaml` has these keys, and no others: an unknown one is refused, with the nearest that \
there is. On the command line `--set training.epochs=3` sets one for a run. The same as \
[JSON Schema](evertrain.schema.json), for editors: `evertrain schema`.

A key without a usual value has to be given. This page is written from the schema by `make docs`.
"""
_COLUMNS = ["", "| key | type | usual | what |", "|---|---|---|---|"]
_BOUNDS = {
    "minimum": "≥ {}",
    "exclusiveMinimum": "> {}",
    "maximum": "≤ {}",
    "exclusiveMaximum": "< {}",
    "minLength": "at least {} long",
    "minItems": "at least {}",
    "maxItems": "at most {}",
}


def settings_page(schema: Schema) -> str:
    """Return the page of a schema of pydantic's."""
    known = schema["$defs"]
    top = {"properties": {}, "required": schema.get("required", [])}
    lines = [_HEAD]
    sections = []
    for key, value in schema["properties"].items():
        classes = list(_classes(value, known))
        if classes:
            sections += _sections(key, value, known, depth=2)
        else:
            top["properties"][key] = value
    lines += ["## Of the project", *_table("", top, known), "", *sections]
    return "\n".join(lines).rstrip() + "\n"


def _sections(key: str, value: Schema, known: Schema, *, depth: int) -> list[str]:
    """A heading, a table and what lies below, for each class that a key may hold."""
    lines = []
    for path, described in _classes(value, known, key):
        lines += [f"{'#' * min(depth, 6)} {_name(path, described)}", ""]
        words = " ".join(described.get("description", "").split())
        lines += [words, *_table(path, described, known), ""]
        for below, inner in described["properties"].items():
            lines += _sections(f"{path}.{below}", inner, known, depth=depth + 1)
    return lines


def _table(path: str, described: Schema, known: Schema) -> list[str]:
    required = described.get("required", [])
    rows = []
    for key, value in described["properties"].items():
        if below := list(_classes(value, known, f"{path}.{key}")):
            place, inner = below[0]
            words = value.get("description") or inner.get("description", "").partition("\n\n")[0]
            what = f"{_cell(words)} See [`{place}`](#{_slug(place, inner)})."
            rows.append(f"| `{key}` | settings | | {what} |")
        else:
            usual = "" if key in required else _usual(value)
            rows.append(f"| `{key}` | {_type(value)} | {usual} | {_what(value)} |")
    return [*_COLUMNS, *rows]


def _what(value: Schema) -> str:
    said = _cell(value.get("description", ""))
    pattern = value.get("pattern")
    return f"{said} Written as `{_cell(pattern)}`." if pattern else said


def _classes(value: Schema, known: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Each class that a value may hold, with where: `a`, `a[]` of a list, `a.NAME` by name."""
    if "$ref" in value:
        yield path, known[value["$ref"].rpartition("/")[2]]
    for choice in [*value.get("anyOf", []), *value.get("oneOf", [])]:
        yield from _classes(choice, known, path)
    if isinstance(value.get("items"), dict):
        yield from _classes(value["items"], known, f"{path}[]")
    if isinstance(value.get("additionalProperties"), dict):
        yield from _classes(value["additionalProperties"], known, f"{path}.NAME")


def _name(path: str, described: Schema) -> str:
    """What a section is called: of a union's classes, each with its `type`."""
    kind = described["properties"].get("type", {}).get("const")
    return f"`{path}`" + (f" of type `{kind}`" if kind else "")


def _slug(path: str, described: Schema) -> str:
    """The anchor of a section, as GitHub and the site make it."""
    words = _name(path, described).lower().replace(" ", "-")
    return "".join(c for c in words if c.isalnum() or c in "-_")


def _type(value: Schema) -> str:
    if "enum" in value:
        return ", ".join(f"`{each}`" for each in value["enum"])
    if "const" in value:
        return f"`{value['const']}`"
    if "anyOf" in value:
        return " or ".join(dict.fromkeys(_type(choice) for choice in value["anyOf"]))
    kind: str = value.get("type", "anything")
    words = {
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "yes or no",
        "null": "nothing",
        "object": "values by name",
    }.get(kind, kind)
    if kind == "array":
        inside = value.get("items")
        words = f"list of {_type(inside)}" if isinstance(inside, dict) and inside else "list"
    bounds = [text.format(_cell(value[key])) for key, text in _BOUNDS.items() if key in value]
    return ", ".join([words, *bounds])


def _usual(value: Schema) -> str:
    if "default" not in value:
        return "empty"
    default = value["default"]
    return "empty" if default in ("", [], {}) else f"`{_cell(json.dumps(default))}`"


def _cell(value: Any) -> str:
    """In one line, and without what would end a table's cell."""
    return " ".join(str(value).split()).replace("|", "\\|")
