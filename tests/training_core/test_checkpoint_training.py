"""Whole trainings and their checkpoints: damage, full disks and retention cost no weight a bit."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkpoint_samples import shard_of, steps_of
from training_samples import Sales, largest_difference, trainer, weights

from infra.errors import StoreFull
from infra.folder import FolderStore
from training_core.checkpoints.catalogue import Checkpoints


def test_training_goes_on_from_the_checkpoint_before_a_damaged_one(tmp_path: Path) -> None:
    whole = trainer(tmp_path / "whole", task=Sales())
    whole.fit()
    trainer(tmp_path / "run", task=Sales()).fit()
    shard = shard_of(tmp_path / "run", 12)
    shard.write_bytes(shard.read_bytes()[:-7])
    again = trainer(tmp_path / "run", task=Sales())
    outcome = again.fit()
    assert outcome.resumed_from == 8
    assert again.checkpoints is not None
    assert again.checkpoints.damaged == [
        f"run/000000012/{shard.name} is damaged: its sha256 is not the manifest's"
    ]
    assert largest_difference(weights(whole.model), weights(again.model)) == 0.0
    assert steps_of(again.checkpoints)[-1] == 12  # written again, whole
    assert trainer(tmp_path / "run", task=Sales()).fit().resumed_from == 12


def test_a_training_keeps_what_its_settings_say(tmp_path: Path) -> None:
    run = trainer(tmp_path, evaluate_every=1, checkpoints={"keep_last": 2, "keep_best": 1})
    losses = {step: m["loss"] for step, m in run.fit().evaluations}
    assert run.checkpoints is not None
    assert steps_of(run.checkpoints) == sorted({11, 12, min(losses, key=losses.__getitem__)})


class _FillingStore(FolderStore):
    """A disk that is full from the n-th shard on."""

    left = 10**9

    def put(self, key: str, data: bytes | memoryview) -> None:
        self.left -= 1
        if self.left < 0:
            raise StoreFull(f"no space left for {key}")
        super().put(key, data)


def test_a_run_that_filled_the_disk_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    whole = trainer(tmp_path / "whole", task=Sales())
    whole.fit()
    store = _FillingStore(tmp_path / "run")
    store.left = 2  # the first state and that of step 4
    with pytest.raises(StoreFull):
        trainer(task=Sales(), place=Checkpoints(store, "run")).fit()
    store.left = 10**9
    again = trainer(task=Sales(), place=Checkpoints(store, "run"))
    assert again.fit().resumed_from == 4
    assert largest_difference(weights(whole.model), weights(again.model)) == 0.0
