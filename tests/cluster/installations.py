"""What a user may install, rendered: each overlay, and the base with each component."""

from __future__ import annotations

import re
import tempfile
from functools import cache
from pathlib import Path

from tests.cluster.references import Cluster
from tests.cluster.rendering import (
    COMPONENTS,
    MANIFESTS,
    OVERLAYS,
    documents,
    rendered,
    with_components,
)

# Overlays by their name, components as "+name".
INSTALLATIONS = (*OVERLAYS, *(f"+{name}" for name in COMPONENTS))
README = (MANIFESTS / "README.md").read_text()


@cache
def text_of(installation: str) -> str:
    """The YAML that an overlay, or the base with a component and what it stands on, renders to."""
    if not installation.startswith("+"):
        return rendered(installation)
    name = installation.removeprefix("+")
    with tempfile.TemporaryDirectory() as folder:
        return with_components(Path(folder), (*COMPONENTS[name], name))


@cache
def cluster_of(installation: str) -> Cluster:
    return Cluster(documents(text_of(installation)), secrets())


def table(heading: str) -> list[list[str]]:
    """The rows of the README's table under a heading, without its head."""
    section = README.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def secrets() -> dict[str, set[str]]:
    """The secrets that the README asks for, and the keys in each."""
    return {
        name.strip("`"): set(re.findall(r"`([^`]+)`", keys)) for name, keys, *_ in table("Secrets")
    }
