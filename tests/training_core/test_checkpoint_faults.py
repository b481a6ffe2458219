"""What goes wrong while a checkpoint is written is said, and costs no checkpoint that was there."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkpoint_samples import Training, files_of

from infra.errors import StoreFull
from infra.folder import FolderStore
from training_core.checkpoints.catalogue import Checkpoints
from training_core.errors import TrainingFailed


class _FillingStore(FolderStore):
    """A disk that is full from the n-th write on."""

    left = 10**9

    def put(self, key: str, data: bytes | memoryview) -> None:
        self._count(key)
        super().put(key, data)

    def create(self, key: str, data: bytes) -> bool:
        self._count(key)
        return super().create(key, data)

    def _count(self, key: str) -> None:
        self.left -= 1
        if self.left < 0:
            raise StoreFull(f"no space left for {key}")


@pytest.mark.parametrize("writes", [0, 1], ids=["shard", "manifest"])
def test_a_full_disk_is_said_and_the_checkpoints_before_are_untouched(
    tmp_path: Path, writes: int
) -> None:
    store = _FillingStore(tmp_path)
    run = Training(Checkpoints(store, "run"))
    for _ in range(2):
        run.train()
        run.save()
    before = {info.key: info.version for info in store.list("run/")}
    store.left = writes
    run.train()
    run.begin()
    with pytest.raises(StoreFull, match="no space left for run/000000003"):
        run.saver.finish()
    assert {info.key: info.version for info in store.list("run/")} == before
    assert run.checkpoints.damaged == []
    store.left = 10
    run.save()  # once there is space
    assert Training(tmp_path).resume() == 3


def test_a_failure_is_known_at_once_and_raised_where_it_is_asked_for(tmp_path: Path) -> None:
    store = _FillingStore(tmp_path)
    store.left = 0
    run = Training(Checkpoints(store, "run"))
    run.train()
    assert run.saver.failed() is None
    run.begin()
    assert run.saver._saving is not None
    run.saver._saving.ended.wait()
    assert (run.saver.failed() or "").startswith("no space left for run/000000001/shard-0.")
    with pytest.raises(StoreFull):
        run.saver.raise_failure()
    assert run.saver.failed() is None
    run.saver.finish()


class _LyingStore(FolderStore):
    """Storage that flips a bit of what it is given."""

    def put(self, key: str, data: bytes | memoryview) -> None:
        changed = bytearray(data)
        changed[-1] ^= 1
        super().put(key, changed)


def test_a_shard_that_does_not_read_back_is_no_checkpoint(tmp_path: Path) -> None:
    run = Training(Checkpoints(_LyingStore(tmp_path), "run"))
    run.train()
    with pytest.raises(TrainingFailed, match="does not read back as it was written") as raised:
        run.save()
    assert "hint: the storage is faulty" in str(raised.value)
    assert files_of(tmp_path) == set()


def test_what_a_killed_writer_left_is_swept_when_the_next_training_starts(tmp_path: Path) -> None:
    run = Training(tmp_path)
    run.train()
    run.save()
    left = {"000000002/shard-0.abc.bin", "000000001/shard-0.abc.bin", "000000001/part-1.abc.json"}
    for name in left:
        FolderStore(tmp_path).put(f"run/{name}", b"left")
    FolderStore(tmp_path).put("run-2/000000002/shard-0.bin", b"of another training")
    whole = files_of(tmp_path / "run")
    assert Training(tmp_path).resume() == 1
    assert whole - files_of(tmp_path / "run") == left
    assert files_of(tmp_path / "run-2")
