"""What goes wrong beside a checkpoint is told, costs none, and is put right later."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkpoint_samples import Training, files_of, same, shard_of, steps_of

from infra.errors import OutsideError
from infra.folder import FolderStore
from training_core.checkpoints.catalogue import Checkpoints
from training_core.errors import TrainingFailed


class _Keeping(FolderStore):
    """Cannot remove what has a certain word in its key."""

    word = "nothing"

    def delete(self, key: str) -> None:
        if self.word in key:
            raise OutsideError(f"cannot delete {key}")
        super().delete(key)


def test_what_cannot_be_removed_costs_no_checkpoint_and_goes_the_next_time(tmp_path: Path) -> None:
    told: list[str] = []
    store = _Keeping(tmp_path)
    run = Training(Checkpoints(store, "run", on_report=told.append), keep_last=1)
    run.train()
    run.save()
    store.word = "000000001/shard"
    for _ in range(2):
        run.train()
        run.save()
    state = run.state()
    assert steps_of(run.checkpoints) == [3]
    assert shard_of(tmp_path, 1).exists()
    assert told == run.checkpoints.notes
    assert len(told) == 2
    for step, words in zip((2, 3), told, strict=True):
        assert words.startswith(f"run/00000000{step}/manifest.json is written, but")
        assert f"cannot delete run/000000001/{shard_of(tmp_path, 1).name}" in words
    assert run.checkpoints.damaged == []
    store.word = "nothing"
    again = Training(tmp_path, seed=1)
    assert again.resume() == 3
    assert same(again.state(), state)
    run.train()
    run.save()
    assert {name.split("/")[1] for name in files_of(tmp_path)} == {"000000004"}


def test_what_was_half_removed_and_then_written_again_stays(tmp_path: Path) -> None:
    store = _Keeping(tmp_path)
    run = Training(Checkpoints(store, "run"), keep_last=1)
    run.train()
    run.save()
    store.word = "000000001/shard"
    run.train()
    run.save()
    store.word = "nothing"
    run.steps = 1
    run.save()
    assert steps_of(run.checkpoints) == [1, 2]


def test_of_two_trainings_at_the_same_step_the_first_keeps_its_checkpoint_whole(
    tmp_path: Path,
) -> None:
    one, other = Training(tmp_path), Training(tmp_path, seed=1)
    for run in (one, other):
        run.train()
    one.save()
    before = files_of(tmp_path)
    with pytest.raises(TrainingFailed, match="another training has written run/000000001"):
        other.save()
    assert files_of(tmp_path) == before
    again = Training(tmp_path, seed=2)
    assert again.resume() == 1
    assert same(again.state(), one.state())


class _Losing(FolderStore):
    """Writes a manifest, and then loses the answer."""

    def create(self, key: str, data: bytes) -> bool:
        super().create(key, data)
        raise OutsideError("the connection was reset")


def test_a_manifest_that_was_written_though_the_store_said_otherwise_keeps_its_shards(
    tmp_path: Path,
) -> None:
    run = Training(Checkpoints(_Losing(tmp_path), "run"))
    run.train()
    with pytest.raises(OutsideError, match="connection was reset"):
        run.save()
    again = Training(tmp_path, seed=1)
    assert again.resume() == 1
    assert same(again.state(), run.state())


def test_a_checkpoint_that_is_passed_over_is_told_at_once_and_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Training(tmp_path)
    for _ in range(2):
        run.train()
        run.save()
    shard = shard_of(tmp_path, 2)
    shard.write_bytes(b"")
    again = Training(tmp_path)
    for _ in range(2):
        assert again.resume() == 1
    out, err = capsys.readouterr()
    words = f"run/000000002/{shard.name} is damaged: its sha256 is not the manifest's"
    assert (out, err) == ("", f"warning: {words}\n")
    told: list[str] = []
    Training(Checkpoints(FolderStore(tmp_path), "run", on_report=told.append)).resume()
    assert told == [words]


@pytest.mark.parametrize("name", ["²", "٣", "notes", "-1"])
def test_what_is_no_step_is_left_alone(tmp_path: Path, name: str) -> None:
    FolderStore(tmp_path).put(f"run/{name}/manifest.json", b"of somebody else")
    (tmp_path / "run" / name / "shard-0.bin").write_bytes(b"of somebody else")
    run = Training(tmp_path)
    assert run.resume() == 0
    run.train()
    run.save()
    assert run.checkpoints.steps() == [1]
    assert files_of(tmp_path / "run" / name) == {"manifest.json", "shard-0.bin"}
