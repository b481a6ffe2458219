"""The version of the data, from a listing alone, and how much of it is new."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from components.common.data_settings import DataSettings
from components.common.sources import open_source
from infra.folder import FolderStore
from pipelines.watch.looking import Look, beating, count_new, forget_marks, keep_marks, look
from training_core.errors import StoppedByGate


def looked(folder: Path | list[Path], **settings: Any) -> Look:
    given = [str(f) for f in folder] if isinstance(folder, list) else str(folder)
    return look(open_source(given), DataSettings(source=given, row_key=["id"], **settings))


def put(folder: Path, *names: str, content: bytes = b"x") -> None:
    for name in names:
        FolderStore(folder).put(name, content)


def test_the_version_is_a_hash_of_what_the_listing_says(tmp_path: Path) -> None:
    put(tmp_path, "b.parquet", "a/ü 1.parquet", "no data", ".hidden.parquet")
    digest = hashlib.sha256()
    for info in FolderStore(tmp_path).list():
        if info.key in ("b.parquet", "a/ü 1.parquet"):
            digest.update(f"{info.key}\0{info.size}\0{info.version}\0".encode())
    found = looked(tmp_path)
    assert found.version == digest.hexdigest()
    assert found.objects == 2


def test_it_changes_with_every_object_that_is_data_and_with_nothing_else(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", "b.parquet")
    versions = [looked(tmp_path).version]
    assert looked(tmp_path).version == versions[0]
    put(tmp_path, "_SUCCESS", "c.parquet.part")
    assert looked(tmp_path).version == versions[0]
    put(tmp_path, "c.parquet")
    versions.append(looked(tmp_path).version)
    put(tmp_path, "a.parquet", content=b"y")
    versions.append(looked(tmp_path).version)
    (tmp_path / "b.parquet").unlink()
    versions.append(looked(tmp_path).version)
    assert len(set(versions)) == 4


def test_many_objects_in_pieces_have_one_version_and_each_has_its_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, *(f"{number:03}.parquet" for number in range(50)))
    whole = looked(tmp_path)
    monkeypatch.setattr("components.snapshot_data.listing.BATCH", 7)
    monkeypatch.setattr("pipelines.watch.looking.BATCH", 3)
    pieces = looked(tmp_path)
    assert pieces.version == whole.version
    assert len(set(pieces.marks().tolist())) == 50
    assert (pieces.marks() == whole.marks()).all()


def test_only_the_window_counts(tmp_path: Path) -> None:
    pattern = "{date}.parquet"
    put(tmp_path, "2026-01-01.parquet", "2026-01-02.parquet", "2026-01-03.parquet")
    last = looked(tmp_path, pattern=pattern, newest=2)
    assert last.objects == 2
    put(tmp_path, "2026-01-01.parquet", content=b"changed, but too old")
    assert looked(tmp_path, pattern=pattern, newest=2).version == last.version
    put(tmp_path, "2026-01-04.parquet")
    assert looked(tmp_path, pattern=pattern, newest=2).version != last.version


def test_nothing_is_no_version_but_words(tmp_path: Path) -> None:
    put(tmp_path / "one", "a.parquet")
    for folder in (tmp_path / "empty", [tmp_path / "one", tmp_path / "empty"]):
        found = looked(folder)
        assert (found.version, found.objects) == ("", 0)
        assert "there is nothing to read" in found.why_none


def test_a_key_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet")
    os.symlink("/etc/hostname", tmp_path / "out")
    os.symlink("/etc", tmp_path / "away")
    with pytest.raises(StoppedByGate, match="leads out"):
        looked(tmp_path)


def test_what_is_new_is_counted_from_the_version_before(tmp_path: Path) -> None:
    store, data = FolderStore(tmp_path / "store"), tmp_path / "data"
    put(data, "a.parquet", "b.parquet", "c.parquet")
    first = looked(data)
    assert count_new(store, first, "") == 3, "there was none"
    assert count_new(store, first, first.version) == 3, "its marks were not kept"
    keep_marks(store, first)
    keep_marks(store, first)
    assert count_new(store, first, first.version) == 0
    put(data, "d.parquet", "e.parquet")
    put(data, "b.parquet", content=b"changed")
    (data / "c.parquet").unlink()
    second = looked(data)
    assert count_new(store, second, first.version) == 3
    (data / "d.parquet").unlink()
    (data / "e.parquet").unlink()
    keep_marks(store, second)
    assert count_new(store, looked(data), second.version) == 0, "deleted is not new"
    forget_marks(store, first.version)
    assert count_new(store, second, first.version) == second.objects
    store.put(f"watch/versions/{first.version}", b"cut short")
    assert count_new(store, second, first.version) == second.objects


def test_a_long_listing_gives_signs_of_life(tmp_path: Path) -> None:
    for number in range(1500):
        (tmp_path / f"{number:04}.parquet").touch()
    beats: list[int] = []
    source = beating(open_source(str(tmp_path)), lambda: beats.append(1))
    settings = DataSettings(source=str(tmp_path), row_key=["id"])
    assert look(source, settings).version == looked(tmp_path).version
    assert len(beats) == 2
