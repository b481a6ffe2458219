"""What goes wrong while a checkpoint is written is said, and costs no checkpoint that was there."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
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
    assert run.saver.failed() == "no space left for run/000000001/shard-0.bin"
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


def test_another_training_under_the_same_prefix_is_noticed(tmp_path: Path) -> None:
    one, other = Training(tmp_path), Training(tmp_path)
    for run in (one, other):
        run.train()
    one.save()
    with pytest.raises(TrainingFailed, match="another training has written run/000000001"):
        other.save()


def test_what_a_killed_writer_left_is_swept_when_the_next_training_starts(tmp_path: Path) -> None:
    run = Training(tmp_path)
    run.train()
    run.save()
    for left in ("000000002/shard-0.bin", "000000001/part-1.abc.json"):
        FolderStore(tmp_path).put(f"run/{left}", b"left")
    FolderStore(tmp_path).put("run-2/000000002/shard-0.bin", b"of another training")
    whole = files_of(tmp_path / "run")
    assert Training(tmp_path).resume() == 1
    assert whole - files_of(tmp_path / "run") == {
        "000000002/shard-0.bin",
        "000000001/part-1.abc.json",
    }
    assert files_of(tmp_path / "run-2")


_ENDS_EARLY = """
import sys
import time
from pathlib import Path
from checkpoint_samples import Training
from infra.folder import FolderStore
from training_core.checkpoints.catalogue import Checkpoints

class Slow(FolderStore):
    def put(self, key, data):
        time.sleep(1)
        super().put(key, data)

run = Training(Checkpoints(Slow(Path(sys.argv[1])), "run"))
run.train()
run.begin()
raise SystemExit("it broke")
"""


def test_a_checkpoint_that_was_begun_is_written_though_the_process_ends(tmp_path: Path) -> None:
    here = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": f"{here}:{here.parents[1]}"}
    ended = subprocess.run(
        [sys.executable, "-c", _ENDS_EARLY, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (1, "it broke\n")
    assert Training(tmp_path).resume() == 1


def test_no_thread_outlives_its_training(tmp_path: Path) -> None:
    run = Training(tmp_path)
    run.train()
    run.save()
    threads = [run.saver._copier._thread, run.saver._writer._thread]
    del run
    gc.collect()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
