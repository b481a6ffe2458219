"""A training's result counts again only for the same training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from components.common.layout import checkpoint_prefix
from components.common.project import open_project
from components.train_distributed.results import (
    drop_result,
    has_result,
    keep_result,
    kept_result,
    made_of,
    result_key,
)
from infra.folder import FolderStore

SMALL = Path(__file__).parents[1] / "small_project"
SPLITS: dict[str, Any] = {"parts": {"train": {"sha256": "a", "rows": 1}}}
RESULT = {"checkpoints": [8, 16], "outcome": {"steps": 16, "loss": float("inf")}}


def _store(folder: Path) -> FolderStore:
    store = FolderStore(folder)
    for step in (8, 16):
        store.put(f"{checkpoint_prefix('key')}/{step:09d}/manifest.json", b"{}")
    return store


def test_what_was_kept_is_found_until_it_is_dropped(tmp_path: Path) -> None:
    store = _store(tmp_path)
    assert kept_result(store, "key", made_of="x") is None
    keep_result(store, "key", RESULT, made_of="x")
    assert has_result(store, "key")
    assert kept_result(store, "key", made_of="x") == RESULT
    assert kept_result(store, "key", made_of="y") is None, "of other settings"
    assert kept_result(store, "other", made_of="x") is None
    drop_result(store, "key")
    assert not has_result(store, "key")
    assert kept_result(store, "key", made_of="x") is None


def test_a_result_whose_checkpoints_have_gone_does_not_count(tmp_path: Path) -> None:
    store = _store(tmp_path)
    keep_result(store, "key", RESULT, made_of="x")
    store.delete(f"{checkpoint_prefix('key')}/{8:09d}/manifest.json")
    assert kept_result(store, "key", made_of="x") is None
    keep_result(store, "key", {**RESULT, "checkpoints": []}, made_of="x")
    assert kept_result(store, "key", made_of="x") is None


def test_a_result_that_cannot_be_read_does_not_count(tmp_path: Path) -> None:
    store = _store(tmp_path)
    for content in (b"", b"{", b'{"format": "evertrain/result/9"}', b"{}"):
        store.put(result_key("key"), content)
        assert kept_result(store, "key", made_of="x") is None


def test_what_a_training_is_made_of_changes_with_what_changes_it() -> None:
    def of(*overrides: str, splits: dict[str, Any] = SPLITS) -> str:
        return made_of(open_project(SMALL, overrides=list(overrides)), splits)

    here = of()
    assert of("cluster.namespace=team", "cluster.train_job.port=30000") == here
    assert of("training.epochs=9") != here
    assert of("training.stopping.max_steps=9") != here
    assert of(splits={"parts": {"train": {"sha256": "b", "rows": 1}}}) != here
