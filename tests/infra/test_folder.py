"""What only a store in a folder must do."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from infra.errors import StoreFull
from infra.folder import FolderStore


def test_a_full_disk_is_said_and_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderStore(tmp_path / "store")
    store.put("kept", b"old")
    (tmp_path / "source").write_bytes(b"new")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    for key in ("kept", "folder/new"):
        with pytest.raises(StoreFull, match="run the same command again"):
            store.put(key, b"new")
        with pytest.raises(StoreFull):
            store.put_file(key, tmp_path / "source")
        with pytest.raises(StoreFull):
            store.create(key, b"new")
    monkeypatch.undo()
    assert [info.key for info in store.list()] == ["kept"]
    assert store.get("kept") == b"old"
    assert not list(tmp_path.rglob(".writing-*"))


def test_an_object_in_a_folder_is_readable_as_the_umask_allows(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    store = FolderStore(tmp_path / "store")
    store.put("a", b"")
    store.create("b", b"")
    expected = (tmp_path / "plain").stat().st_mode
    assert [(store.root / key).stat().st_mode for key in "ab"] == [expected] * 2


def test_two_writes_within_one_tick_of_the_clock_have_two_versions(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    versions = []
    for data in (b"one", b"two"):
        store.put("a", data)
        os.utime(store.root / "a", ns=(10**18, 10**18))
        info = store.info("a")
        assert info is not None
        versions.append(info.version)
    assert versions[0] != versions[1]
