"""Checkpoints: a damaged one is noticed, named and passed over; a whole one is never lost."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from training_samples import CPU, Sales, largest_difference, trainer, weights

from infra.errors import StoreFull
from infra.folder import FolderStore
from training_core.checkpoint import Checkpoints, _seal
from training_core.errors import TrainingFailed
from training_core.parallel import SingleProcess
from training_core.settings import CheckpointSettings

ALONE = SingleProcess(CPU)


def _save(checkpoints: Checkpoints, step: int, loss: float | None = None) -> None:
    checkpoints.save(
        step=step,
        samples=step * 10,
        metrics={} if loss is None else {"loss": loss},
        state={"weights": torch.full((50,), float(step))},
        rank_state={"torch": torch.full((5,), step)},
        strategy=ALONE,
    )


@pytest.fixture
def saved(tmp_path: Path) -> Checkpoints:
    """Three checkpoints: steps 1, 2 and 3."""
    checkpoints = Checkpoints(FolderStore(tmp_path), "run")
    for step in (1, 2, 3):
        _save(checkpoints, step, loss=1 / step)
    return checkpoints


def _file(checkpoints: Checkpoints, name: str) -> Path:
    assert isinstance(checkpoints.store, FolderStore)
    return checkpoints.store.root / name


def _newest(checkpoints: Checkpoints) -> int:
    """Step of the checkpoint that training would go on from; 0: from the start."""
    whole = checkpoints.newest(ALONE)
    if whole is None:
        return 0
    assert whole.state["weights"].tolist() == [whole.manifest.step] * 50
    assert whole.rank_state is not None
    assert whole.rank_state["torch"].tolist() == [whole.manifest.step] * 5
    return whole.manifest.step


def test_what_is_saved_is_loaded(saved: Checkpoints) -> None:
    manifests = saved.manifests()
    assert [(m.step, m.samples) for m in manifests] == [(1, 10), (2, 20), (3, 30)]
    assert manifests[1].metrics == {"loss": 0.5}
    assert set(manifests[1].shards) == {"state.pt", "rank-0.pt"}
    assert _newest(saved) == 3
    assert saved.damaged == []


def test_steps_are_ordered_as_numbers(saved: Checkpoints) -> None:
    for step in (10, 1_000_000_000, 200):
        _save(saved, step)
    assert [m.step for m in saved.manifests()] == [1, 2, 3, 10, 200, 1_000_000_000]


@pytest.mark.parametrize("shard", ["state.pt", "rank-0.pt"])
@pytest.mark.parametrize("place", [0.0, 0.1, 0.5, 0.99])
def test_a_flipped_bit_is_reported_with_its_file_and_the_checkpoint_before_is_used(
    saved: Checkpoints, shard: str, place: float
) -> None:
    path = _file(saved, f"run/000000003/{shard}")
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 4
    path.write_bytes(content)
    assert _newest(saved) == 2
    (words,) = saved.damaged
    assert f"run/000000003/{shard} is damaged" in words


@pytest.mark.parametrize("length", [0, 10, -1])
def test_a_truncated_shard_is_reported_and_passed_over(saved: Checkpoints, length: int) -> None:
    path = _file(saved, "run/000000003/state.pt")
    path.write_bytes(path.read_bytes()[:length])
    assert _newest(saved) == 2
    assert "run/000000003/state.pt is damaged" in saved.damaged[0]


def test_a_missing_shard_is_reported_and_passed_over(saved: Checkpoints) -> None:
    _file(saved, "run/000000003/state.pt").unlink()
    assert _newest(saved) == 2
    assert "run/000000003/state.pt is missing" in saved.damaged[0]


def test_what_has_no_manifest_is_no_checkpoint(saved: Checkpoints) -> None:
    _file(saved, "run/000000003/manifest.json").unlink()
    assert [m.step for m in saved.manifests()] == [1, 2]
    assert _newest(saved) == 2
    assert saved.damaged == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"7", b"null", b"{}", b"\xff\xfe", b'{"sha256": "0"}']
)
def test_a_damaged_manifest_is_reported_and_passed_over(saved: Checkpoints, content: bytes) -> None:
    _file(saved, "run/000000003/manifest.json").write_bytes(content)
    assert _newest(saved) == 2
    assert "run/000000003/manifest.json is no manifest" in saved.damaged[0]


def test_no_flipped_bit_in_a_manifest_goes_unnoticed(saved: Checkpoints) -> None:
    path = _file(saved, "run/000000003/manifest.json")
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert [m.step for m in saved.manifests()] == [1, 2], whole[place - 5 : place + 5]


def test_training_goes_on_from_the_checkpoint_before_a_damaged_one(tmp_path: Path) -> None:
    whole = trainer(tmp_path / "whole", task=Sales())
    whole.fit()
    run = trainer(tmp_path / "run", task=Sales())
    run.fit()
    shard = tmp_path / "run/run/000000012/state.pt"
    shard.write_bytes(shard.read_bytes()[:-7])
    again = trainer(tmp_path / "run", task=Sales())
    outcome = again.fit()
    assert outcome.resumed_from == 8
    assert again.checkpoints is not None
    assert len(again.checkpoints.damaged) == 1
    assert largest_difference(weights(whole.model), weights(again.model)) == 0.0
    assert _steps(again.checkpoints)[-1] == 12  # written again, whole
    assert trainer(tmp_path / "run", task=Sales()).fit().resumed_from == 12


# ---- retention -------------------------------------------------------------------------------


def _steps(checkpoints: Checkpoints) -> list[int]:
    return [manifest.step for manifest in checkpoints.manifests()]


def test_the_last_and_the_best_are_kept(tmp_path: Path) -> None:
    checkpoints = Checkpoints(FolderStore(tmp_path), "run")
    for step, loss in enumerate([0.9, 0.1, 0.5, 0.2, 0.8, 0.7], start=1):
        _save(checkpoints, step, loss)
    assert checkpoints.retain(CheckpointSettings(keep_last=2, keep_best=2)) == [2, 4, 5, 6]
    assert _steps(checkpoints) == [2, 4, 5, 6]
    folders = {path.parent.name for path in tmp_path.rglob("*.pt")}
    assert folders == {f"{step:09d}" for step in (2, 4, 5, 6)}


def test_one_without_metrics_is_kept_only_as_one_of_the_last(tmp_path: Path) -> None:
    checkpoints = Checkpoints(FolderStore(tmp_path), "run")
    _save(checkpoints, 1)
    assert checkpoints.retain(CheckpointSettings(keep_last=1, keep_best=1)) == [1]
    _save(checkpoints, 2, loss=0.5)
    assert checkpoints.retain(CheckpointSettings(keep_last=1, keep_best=1)) == [2]


def test_the_only_checkpoint_is_never_deleted_and_none_is_no_error(tmp_path: Path) -> None:
    checkpoints = Checkpoints(FolderStore(tmp_path), "run")
    assert checkpoints.retain(CheckpointSettings()) == []
    _save(checkpoints, 1, loss=0.5)
    for _ in range(3):
        assert checkpoints.retain(CheckpointSettings(keep_last=1, keep_best=1)) == [1]
    assert _newest(checkpoints) == 1


def test_other_trainings_in_the_same_store_are_left_alone(saved: Checkpoints) -> None:
    other = Checkpoints(saved.store, "run-2")
    _save(other, 9, loss=9.0)
    saved.retain(CheckpointSettings(keep_last=1, keep_best=1))
    assert _steps(saved) == [3]
    assert _steps(other) == [9]


def test_a_training_keeps_what_its_settings_say(tmp_path: Path) -> None:
    run = trainer(tmp_path, evaluate_every=1, checkpoints={"keep_last": 2, "keep_best": 1})
    losses = {step: m["loss"] for step, m in run.fit().evaluations}
    assert run.checkpoints is not None
    assert _steps(run.checkpoints) == sorted({11, 12, min(losses, key=losses.__getitem__)})


# ---- faults while writing --------------------------------------------------------------------


class _FillingStore(FolderStore):
    """A disk that is full from the n-th write on."""

    left = 10**9

    def put(self, key: str, data: bytes) -> None:
        self.left -= 1
        if self.left < 0:
            raise StoreFull(f"no space left for {key}")
        super().put(key, data)


@pytest.mark.parametrize("writes", [0, 1, 2], ids=["state", "rank", "manifest"])
def test_a_full_disk_is_said_and_the_checkpoints_before_are_untouched(
    tmp_path: Path, writes: int
) -> None:
    store = _FillingStore(tmp_path)
    checkpoints = Checkpoints(store, "run")
    for step in (1, 2):
        _save(checkpoints, step)
    before = {info.key: info.version for info in store.list("run/00000000")}
    store.left = writes
    with pytest.raises(StoreFull):
        _save(checkpoints, 3)
    assert _steps(checkpoints) == [1, 2]
    assert _newest(checkpoints) == 2
    assert checkpoints.damaged == []
    after = {info.key: info.version for info in store.list("run/00000000")}
    assert {key: after[key] for key in before} == before
    store.left = 10
    _save(checkpoints, 3)  # once there is space
    assert _newest(checkpoints) == 3


def test_a_run_that_filled_the_disk_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    whole = trainer(tmp_path / "whole", task=Sales())
    whole.fit()
    store = _FillingStore(tmp_path / "run")
    store.left = 5  # the second checkpoint is not finished
    with pytest.raises(StoreFull):
        trainer(task=Sales(), place=Checkpoints(store, "run")).fit()
    store.left = 10**9
    again = trainer(task=Sales(), place=Checkpoints(store, "run"))
    assert again.fit().resumed_from == 4
    assert largest_difference(weights(whole.model), weights(again.model)) == 0.0


class _LyingStore(FolderStore):
    """Storage that flips a bit of what it is given."""

    def put(self, key: str, data: bytes) -> None:
        super().put(key, data[:-1] + bytes([data[-1] ^ 1]))


def test_a_shard_that_does_not_read_back_is_no_checkpoint(tmp_path: Path) -> None:
    checkpoints = Checkpoints(_LyingStore(tmp_path), "run")
    with pytest.raises(TrainingFailed, match="does not read back as it was written") as raised:
        _save(checkpoints, 1)
    assert "hint: the storage is faulty" in str(raised.value)
    assert _steps(checkpoints) == []
    assert list(checkpoints.store.list("run/")) == []


# ---- loading ---------------------------------------------------------------------------------


class _Evil:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_a_pickle_with_the_right_hash_is_not_executed(saved: Checkpoints, tmp_path: Path) -> None:
    shard = _file(saved, "run/000000003/state.pt")
    torch.save({"weights": _Evil(tmp_path / "executed")}, shard)
    path = _file(saved, "run/000000003/manifest.json")
    manifest = json.loads(path.read_text())
    del manifest["sha256"]
    manifest["shards"]["state.pt"] = hashlib.sha256(shard.read_bytes()).hexdigest()
    path.write_text(json.dumps({**manifest, "sha256": _seal(manifest)}))
    assert _steps(saved) == [1, 2, 3]
    assert _newest(saved) == 2
    assert "run/000000003/state.pt cannot be loaded" in saved.damaged[0]
    assert not (tmp_path / "executed").exists()
    torch.load(shard, weights_only=False)  # it would have been
    assert (tmp_path / "executed").exists()


def test_a_store_that_is_away_is_not_taken_for_a_lost_checkpoint(saved: Checkpoints) -> None:
    manifest = saved.manifests()[-1]

    def away(key: str) -> bytes:
        raise OSError("the network is gone")

    saved.store.get = away  # type: ignore[method-assign]
    with pytest.raises(OSError, match="network is gone"):
        saved.load(manifest)
    assert not saved.damaged
