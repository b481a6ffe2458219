"""constraints.txt is the whole lock, and agrees with pyproject.toml."""

from __future__ import annotations

import importlib.metadata
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LINES = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line[:1] != "#"]


def locked() -> dict[str, Version]:
    pairs = [line.split("==") for line in LINES]
    return {canonicalize_name(name): Version(version) for name, version in pairs}


def wanted() -> list[Requirement]:
    extras = PROJECT["optional-dependencies"]
    texts = [*PROJECT["dependencies"], *extras["examples"], *extras["dev"]]
    return [Requirement(text) for text in texts]


def test_every_line_pins_one_package_to_one_public_version() -> None:
    versions = locked()
    assert len(versions) == len(LINES)
    for name, version in versions.items():
        assert version.local is None, f"{name}: a local version fits one kind of machine only"


def test_the_lock_is_within_the_bounds_of_the_project() -> None:
    versions = locked()
    for requirement in wanted():
        version = versions[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"{requirement} but {version} is locked"


def test_whatever_the_dependencies_need_is_locked_too() -> None:
    versions = locked()
    todo, seen = wanted(), set[tuple[str, str]]()
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        assert name in versions, f"{name} is missing in constraints.txt: make lock"
        for extra in ["", *requirement.extras]:
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            needs = importlib.metadata.requires(name) or []
            for need in map(Requirement, needs):
                if need.marker is None or need.marker.evaluate({"extra": extra}):
                    todo.append(need)
    assert {name for name, _ in seen} == set(versions), "locked, but nothing needs it"
