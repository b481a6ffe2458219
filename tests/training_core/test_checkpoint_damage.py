"""A damaged checkpoint is noticed, named and passed over; a whole one is never lost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoint_samples import Training, files_of, same, shard_of, steps_of
from torch import Tensor

from infra.folder import FolderStore
from training_core.checkpoints.catalogue import Checkpoints
from training_core.checkpoints.manifest import Manifest
from training_core.checkpoints.numbers import to_json

MANIFEST = "run/000000003/manifest.json"


@pytest.fixture
def saved(tmp_path: Path) -> dict[int, dict[str, Tensor]]:
    """The states of steps 1, 2 and 3, of which there are checkpoints."""
    run = Training(tmp_path)
    states = {}
    for step in (1, 2, 3):
        run.train()
        run.save(
            metrics={"loss": 1 / step},
            progress={"rate": 1e-07},
            own={"torch": torch.full((5,), step)},
        )
        states[step] = run.state()
    return states


def shard_in(place: Path) -> str:
    """The key of the newest shard."""
    return shard_of(place, 3).relative_to(place).as_posix()


def resumed(place: Path, states: dict[int, dict[str, Tensor]]) -> tuple[int, list[str]]:
    """Where a training goes on from, verified to be that state, and what it reports."""
    run = Training(place, seed=9)
    fresh = run.state()
    step = run.resume()
    assert same(run.state(), states.get(step, fresh))
    return step, run.checkpoints.damaged


@pytest.mark.parametrize("place", [0.0, 0.1, 0.5, 0.99])
def test_a_flipped_bit_is_reported_with_its_file_and_the_checkpoint_before_is_used(
    tmp_path: Path, saved: dict[int, dict[str, Tensor]], place: float
) -> None:
    shard = shard_in(tmp_path)
    content = bytearray((tmp_path / shard).read_bytes())
    content[int(place * len(content))] ^= 4
    (tmp_path / shard).write_bytes(content)
    assert resumed(tmp_path, saved) == (
        2,
        [f"{shard} is damaged: its sha256 is not the manifest's"],
    )


@pytest.mark.parametrize("length", [0, 10, -1])
def test_a_truncated_shard_is_reported_and_passed_over(
    tmp_path: Path, saved: dict[int, dict[str, Tensor]], length: int
) -> None:
    shard = shard_in(tmp_path)
    (tmp_path / shard).write_bytes((tmp_path / shard).read_bytes()[:length])
    step, damaged = resumed(tmp_path, saved)
    assert step == 2
    assert f"{shard} is damaged" in damaged[0]


def test_a_shard_that_became_longer_is_reported_and_passed_over(
    tmp_path: Path, saved: dict[int, dict[str, Tensor]]
) -> None:
    shard = shard_of(tmp_path, 3)
    shard.write_bytes(shard.read_bytes() + b"x")
    assert resumed(tmp_path, saved)[0] == 2


def test_a_missing_shard_is_reported_and_passed_over(
    tmp_path: Path, saved: dict[int, dict[str, Tensor]]
) -> None:
    shard = shard_in(tmp_path)
    (tmp_path / shard).unlink()
    assert resumed(tmp_path, saved) == (2, [f"{shard} is missing"])


def test_what_has_no_manifest_is_no_checkpoint(
    tmp_path: Path, saved: dict[int, dict[str, Tensor]]
) -> None:
    (tmp_path / MANIFEST).unlink()
    assert resumed(tmp_path, saved) == (2, [])


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"7", b"null", b"{}", b"\xff\xfe", b'{"sha256":"0"}', b"[" * 9999]
)
def test_a_damaged_manifest_is_reported_and_passed_over(
    tmp_path: Path, saved: dict[int, dict[str, Tensor]], content: bytes
) -> None:
    (tmp_path / MANIFEST).write_bytes(content)
    step, damaged = resumed(tmp_path, saved)
    assert step == 2
    assert f"{MANIFEST} is no manifest" in damaged[0]


def test_no_flipped_bit_in_a_manifest_goes_unnoticed(
    tmp_path: Path, saved: dict[int, dict[str, Tensor]]
) -> None:
    whole = (tmp_path / MANIFEST).read_bytes()
    Manifest.from_json(whole)
    for place in range(len(whole)):
        for bit in range(8) if place % 29 == 0 else (5,):  # bit 5 makes an E of the e in 1e-07
            flipped = bytes([whole[place] ^ 1 << bit])
            with pytest.raises(ValueError):  # noqa: PT011 (whatever it says)
                Manifest.from_json(whole[:place] + flipped + whole[place + 1 :])


def test_if_all_are_damaged_nothing_is_loaded_and_nothing_is_removed(
    tmp_path: Path, saved: dict[int, dict[str, Tensor]]
) -> None:
    for shard in tmp_path.rglob("shard-0.*.bin"):
        shard.write_bytes(b"")
    before = files_of(tmp_path)
    step, damaged = resumed(tmp_path, saved)
    assert (step, len(damaged)) == (0, 3)
    assert files_of(tmp_path) == before


def test_a_training_that_comes_to_a_damaged_step_again_writes_it_whole(
    tmp_path: Path, saved: dict[int, dict[str, Tensor]]
) -> None:
    shard_of(tmp_path, 3).write_bytes(b"")
    (tmp_path / "run/000000003/shard-1.abc.bin").write_bytes(b"of a second rank, once")
    (tmp_path / "run/000000002/manifest.json").write_bytes(b"")
    again = Training(tmp_path, seed=9)
    assert again.resume() == 1
    for _ in (2, 3):
        again.train()
        again.save()
    assert files_of(tmp_path / "run/000000003") == {shard_of(tmp_path, 3).name, "manifest.json"}
    assert resumed(tmp_path, saved) == (3, [])


def test_a_damaged_newer_checkpoint_never_costs_a_whole_older_one_its_place(
    tmp_path: Path,
) -> None:
    run = Training(tmp_path)
    for _ in range(3):
        run.train(2)
        run.save()
    shard_of(tmp_path, 6).write_bytes(b"")
    again = Training(tmp_path, keep_last=1, keep_best=0)
    assert again.resume() == 4
    again.train()
    again.save()
    assert files_of(tmp_path / "run/000000005") == {shard_of(tmp_path, 5).name, "manifest.json"}
    assert Training(tmp_path).resume() == 5


def test_a_damaged_checkpoint_does_not_count_as_one_of_the_best(tmp_path: Path) -> None:
    run = Training(tmp_path)
    for loss in (0.5, 0.1):
        run.train(2)
        run.save(metrics={"loss": loss})
    shard_of(tmp_path, 4).write_bytes(b"")
    again = Training(tmp_path, keep_last=1, keep_best=1)
    assert again.resume() == 2
    again.train(3)
    again.save(metrics={"loss": 0.9})
    assert steps_of(again.checkpoints) == [2, 5]


# ---- reading ---------------------------------------------------------------------------------


def test_a_model_is_read_whole_for_evaluation_or_not_at_all(
    tmp_path: Path, saved: dict[int, dict[str, Tensor]]
) -> None:
    checkpoints = Checkpoints(FolderStore(tmp_path), "run")
    shard = shard_in(tmp_path)
    (tmp_path / shard).write_bytes((tmp_path / shard).read_bytes()[1:])
    first, second, third = (checkpoints.model_state(m) for m in checkpoints.manifests())
    assert third is None
    assert checkpoints.damaged == [f"{shard} is damaged: its sha256 is not the manifest's"]
    for step, state in ((1, first), (2, second)):
        assert state is not None
        expected = {k: v for k, v in saved[step].items() if k.startswith("model.")}
        assert same({f"model.{name}": value for name, value in state.items()}, expected)


class _Away(FolderStore):
    """A store whose network fails."""

    def pieces(self, key: str) -> Iterator[bytes]:
        raise OSError("the network is gone")


def test_a_store_that_is_away_is_not_taken_for_a_lost_checkpoint(
    tmp_path: Path, saved: dict[int, dict[str, Tensor]]
) -> None:
    run = Training(Checkpoints(_Away(tmp_path), "run"), seed=9)
    fresh = run.state()
    with pytest.raises(OSError, match="network is gone"):
        run.resume()
    with pytest.raises(OSError, match="network is gone"):
        run.checkpoints.model_state(run.checkpoints.manifests()[0])
    assert run.checkpoints.damaged == []
    assert same(run.state(), fresh)


class _OnceWrong(FolderStore):
    """Flips a bit the first time each object is read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.read: set[str] = set()

    def pieces(self, key: str) -> Iterator[bytes]:
        wrong, self.read = key not in self.read, self.read | {key}
        for piece in super().pieces(key):
            yield bytes([piece[0] ^ wrong]) + piece[1:]


def test_a_bit_that_flipped_only_on_the_way_here_is_read_again(
    tmp_path: Path, saved: dict[int, dict[str, Tensor]]
) -> None:
    run = Training(Checkpoints(_OnceWrong(tmp_path), "run"))
    assert run.resume() == 3
    assert run.checkpoints.damaged == []


@pytest.mark.parametrize(
    "change",
    [
        {"start": 10**6},
        {"start": -64},
        {"start": 1},
        {"shard": "../other"},
        {"offsets": [10**6, 0]},
        {"offsets": [-1, 0]},
        {"sizes": [13, 4]},
        {"sizes": [13]},
        {"dtype": "load"},
        {"dtype": "nn"},
    ],
    ids=str,
)
def test_a_well_sealed_manifest_that_makes_no_sense_is_passed_over(
    tmp_path: Path, saved: dict[int, dict[str, Tensor]], change: dict[str, Any]
) -> None:
    content = json.loads((tmp_path / MANIFEST).read_text())
    del content["sha256"]
    dtype, size, ((offsets, sizes, shard, start),) = content["tensors"]["model.first.weight"]
    old = {"dtype": dtype, "offsets": offsets, "sizes": sizes, "shard": shard, "start": start}
    new = {**old, **change}
    chunk = [new["offsets"], new["sizes"], new["shard"], new["start"]]
    content["tensors"]["model.first.weight"] = [new["dtype"], size, [chunk]]
    seal = hashlib.sha256(to_json(content)).hexdigest()
    (tmp_path / MANIFEST).write_bytes(to_json({**content, "sha256": seal}))
    step, damaged = resumed(tmp_path, saved)
    assert step == 2
    assert f"{MANIFEST} is no manifest" in damaged[0]
