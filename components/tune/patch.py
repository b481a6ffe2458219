"""The winner as a patch of evertrain.yaml: to be read, and to be written into it.

Only the values change: comments, order and layout of the file stay, byte for byte.
"""

from __future__ import annotations

import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from components.common.project import Project, open_project
from components.common.tune_figures import ChangeFigures, TuneFigures
from components.tune.comparison import repeated_words
from components.tune.space import override, told
from training_core.errors import ConfigurationError


def patch(figures: TuneFigures) -> str:
    """Return the changes as YAML, a comment to each; empty: there is no winner."""
    if not figures.changes:
        return ""
    compared = figures.comparison
    said = [f"What the search {figures.study} would change in evertrain.yaml."]
    if compared is not None:
        said.append(f"{compared.words[0].upper()}{compared.words[1:]}.")
        if compared.holdout is not None:
            said.append(f"{holdout_words(figures)}.")
    said.append("gained: what validation loses with this one put back, ± its error over seeds.")
    lines = [
        line
        for each in said
        for line in textwrap.wrap(each, 88, initial_indent="# ", subsequent_indent="#   ")
    ]
    tree: dict[str, Any] = {}
    for change in figures.changes:
        *parents, last = change.path.split(".")
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = change
    return "\n".join([*lines, *_lines(tree, 0)]) + "\n"


def holdout_words(figures: TuneFigures) -> str:
    """Say what the holdout showed, and that it was looked at."""
    assert figures.comparison is not None
    found = figures.comparison.holdout
    assert found is not None
    sure = "ahead" if found.low > 0 else "behind" if found.high < 0 else "not shown to be ahead"
    return (
        f"On the holdout, which was looked at for this (question {found.question} in the ledger): "
        f"the winner is {sure}, loss {found.present:.4f} less {found.mean:.4f} "
        f"({found.low:+.4f} to {found.high:+.4f} at {found.confidence:.0%}, "
        f"{found.clusters} clusters)"
    )


def applied(project: Project, changes: Sequence[ChangeFigures]) -> str:
    """Return evertrain.yaml with the new values.

    Raises:
        ConfigurationError: The file is laid out so that this cannot be done here.
    """
    file = project.folder / "evertrain.yaml"
    text = file.read_text()
    for change in changes:
        text = _set(text, change.path.split("."), _value(change))
    _refuse_unless_meant(project, text, changes)
    return text


def write_patch(project: Project, changes: Sequence[ChangeFigures]) -> None:
    """Write the new values into evertrain.yaml, whole or not at all."""
    file = project.folder / "evertrain.yaml"
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(applied(project, changes))
    unfinished.replace(file)


def _lines(tree: dict[str, Any], depth: int) -> list[str]:
    lines = []
    for name, each in tree.items():
        if isinstance(each, ChangeFigures):
            gained = each.note or "not measured"
            if each.gained is not None:
                gained = f"gained {repeated_words(each.gained)}"
            lines.append(f"{'  ' * depth}{name}: {_value(each)}  # was {told(each.old)}; {gained}")
        else:
            lines += [f"{'  ' * depth}{name}:", *_lines(each, depth + 1)]
    return lines


def _value(change: ChangeFigures) -> str:
    return override(change.path, change.new).partition("=")[2]


def _set(text: str, path: list[str], value: str) -> str:
    """Put a value at a path of a YAML text, whose places its own parser tells."""
    node = yaml.compose(text, yaml.SafeLoader)
    for depth, name in enumerate(path):
        if not isinstance(node, yaml.MappingNode):
            raise ConfigurationError(
                f"evertrain.yaml: {'.'.join(path[:depth])} is no section",
                hint="write the patch into it by hand",
            )
        found = next((v for k, v in node.value if k.value == name), None)
        if found is None:
            return _added(text, node, path[depth:], value, top=depth == 0)
        node = found
    assert node is not None
    return text[: node.start_mark.index] + value + text[node.end_mark.index :]


def _added(text: str, node: yaml.MappingNode, path: list[str], value: str, *, top: bool) -> str:
    """Add a key, and the sections above it, to a section: as its first, or at the file's end."""
    if node.flow_style:
        inner = value
        for name in reversed(path[1:]):
            inner = f"{{{name}: {inner}}}"
        at = node.start_mark.index + 1
        comma = ", " if node.value else ""
        return f"{text[:at]}{path[0]}: {inner}{comma}{text[at:]}"
    indent = 0 if top else node.start_mark.column
    lines = [f"{' ' * (indent + 2 * i)}{name}:" for i, name in enumerate(path)]
    added = "\n".join(lines) + f" {value}\n"
    if top:
        return text + ("" if text.endswith("\n") else "\n") + added
    at = text.rfind("\n", 0, node.start_mark.index) + 1
    return text[:at] + added + text[at:]


def _refuse_unless_meant(project: Project, text: str, changes: Sequence[ChangeFigures]) -> None:
    """Make sure that the text holds the settings with these changes, and nothing else is new."""
    wanted = open_project(project.folder, overrides=[override(c.path, c.new) for c in changes])
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "evertrain.yaml").write_text(text)
        try:
            same = open_project(folder).settings == wanted.settings
        except ConfigurationError:
            same = False
    if not same:
        raise ConfigurationError(
            f"{project.folder / 'evertrain.yaml'} is laid out so that the patch cannot be applied",
            hint="write the values of the patch into it by hand",
        )
