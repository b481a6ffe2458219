"""The doctor finds a store on which runs would not be kept apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infra.folder import FolderStore
from infra.store import Versioned
from pipelines.doctor import Finding, examine


def of_the_store(project: Path) -> Finding:
    return next(finding for finding in examine(project) if finding.name == "object store")


def test_a_store_that_compares_and_creates_is_healthy(fresh_project: Path) -> None:
    found = of_the_store(fresh_project)
    assert (found.exit_code, found.words.partition(", ")[2]) == (
        0, "create-if-absent works, compare-and-swap too"
    )  # fmt: skip
    assert list(FolderStore(fresh_project / ".evertrain" / "store").list()) == []


def ignores_the_version(real: Callable[..., Any]) -> Callable[..., Any]:
    def replace(store: FolderStore, key: str, data: bytes, *, version: str) -> str | None:
        written: str | None = real(store, key, data, version=store.read(key).version)
        return written

    return replace


def refuses_all(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda store, key, data, version: None


def ages(real: Callable[..., Any]) -> Callable[..., Any]:
    def read(store: FolderStore, key: str) -> Versioned:
        found: Versioned = real(store, key)
        return found._replace(age=found.age + 60)

    return read


@pytest.mark.parametrize(
    ("method", "broken", "words"),
    [
        ("replace", ignores_the_version, "does not honour compare-and-swap"),
        ("replace", refuses_all, "does not honour compare-and-swap"),
        ("read", ages, "60 s old: a run would lose its lease"),
    ],
)
def test_one_that_does_not_is_an_outside_fault(
    fresh_project: Path, monkeypatch: pytest.MonkeyPatch, method: str, broken: Any, words: str
) -> None:
    monkeypatch.setattr(FolderStore, method, broken(getattr(FolderStore, method)))
    found = of_the_store(fresh_project)
    assert found.exit_code == 3
    assert words in found.words
    assert "hint: " in found.words
