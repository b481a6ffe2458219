"""The doctor finds what a run or a deploy would stumble over: the store, the cluster's settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.folder import FolderStore
from infra.store import Versioned
from pipelines import doctor
from pipelines.doctor import Finding, examine
from tests.pipelines.deploy_case import DEPLOYABLE


def of(name: str, project: Path) -> Finding:
    return next(finding for finding in examine(project) if finding.name == name)


def of_the_store(project: Path) -> Finding:
    return of("object store", project)


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


def test_a_project_without_a_cluster_needs_none(fresh_project: Path) -> None:
    found = of("cluster", fresh_project)
    assert (found.exit_code, found.words) == (0, "none asked for")


def test_what_could_not_be_deployed_is_found_all_at_once(fresh_project: Path) -> None:
    settings = yaml.safe_load((fresh_project / "evertrain.yaml").read_text())
    settings["cluster"] = {"environment": {"API_TOKEN": "hunter2"}}
    (fresh_project / "evertrain.yaml").write_text(yaml.safe_dump(settings))
    found = of("cluster", fresh_project)
    assert found.exit_code == 2
    for words in ("cluster.image is empty", "API_TOKEN looks like a secret", "no MLflow server"):
        assert words in found.words
    assert "hunter2" not in found.words


def test_what_can_be_deployed_is_said_with_its_image(
    fresh_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for elsewhere in ("_data", "_store", "_tracking"):  # of the cluster
        monkeypatch.setattr(doctor, elsewhere, lambda project: "")
    settings = yaml.safe_load((fresh_project / "evertrain.yaml").read_text())
    settings["data"]["source"] = "s3://bucket/data"
    settings |= DEPLOYABLE
    (fresh_project / "evertrain.yaml").write_text(yaml.safe_dump(settings))
    found = of("cluster", fresh_project)
    assert (found.exit_code, found.words) == (
        0, f"can be deployed; image {DEPLOYABLE['cluster']['image']}"
    )  # fmt: skip
