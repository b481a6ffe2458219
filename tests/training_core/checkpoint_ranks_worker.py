"""What each process of test_checkpoint_ranks.py does: one job after another.

`save` trains five steps with checkpoints after the third and the fifth; `load` resumes and writes
down the whole state; `fail` has rank 1 fail in different ways; `discard` has each fail to list.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import torch
from checkpoint_samples import CPU, Training, steps_of

from infra.errors import OutsideError
from infra.folder import FolderStore
from infra.store import ObjectInfo
from training_core.checkpoints.catalogue import Checkpoints
from training_core.errors import TrainingFailed
from training_core.parallel.ddp import DataParallel
from training_core.parallel.fsdp import ShardedDataParallel
from training_core.parallel.group import ProcessGroup

Job = tuple[Path, str, str]  # folder, verb, strategy


def strategy_of(name: str) -> ProcessGroup:
    if name == "ddp":
        return DataParallel(CPU)
    return ShardedDataParallel(CPU, replicas=2 if name == "hsdp" else 1)


def save(folder: Path, strategy: ProcessGroup) -> None:
    """With the same inputs on every rank, so all strategies take nearly the same steps."""
    run = Training(folder / "store", strategy=strategy)
    run.train(3)
    own = {"torch": torch.full((5,), strategy.rank)}
    run.begin(metrics={"loss": 0.5}, own=own, extra={"norms": torch.ones(3)})
    state = run.state()
    run.train(2)
    run.save(own=own)
    if strategy.rank == 0:
        torch.save(state, folder / "third.pt")
    later = run.state()
    if strategy.rank == 0:
        torch.save(later, folder / "fifth.pt")


def load(folder: Path, strategy: ProcessGroup) -> None:
    run = Training(folder / "store", strategy=strategy, seed=strategy.rank + 7)
    restored = run.saver.restore()
    assert restored is not None
    own = None if restored.own is None else restored.own["torch"].tolist()
    state = run.state()
    said = strategy.gather((restored.manifest.step, own, run.checkpoints.damaged))
    if strategy.rank == 0:
        torch.save(state, folder / "loaded.pt")
        (folder / "loaded.json").write_text(json.dumps(said))


class _Failing(FolderStore):
    """Fails to write what has a certain word in its key, without a word of its own."""

    word = "nothing"

    def put(self, key: str, data: bytes | memoryview) -> None:
        if self.word in key:
            raise MemoryError
        super().put(key, data)

    def pieces(self, key: str) -> Iterator[bytes]:
        for piece in super().pieces(key):
            yield bytes([piece[0] ^ (self.word in key)]) + piece[1:]


def fail(folder: Path, strategy: ProcessGroup) -> None:
    """Each way to fail, and whether the one before is still used by all."""
    store = _Failing(folder / "failing")
    run = Training(Checkpoints(store, "run"), strategy=strategy)
    run.train()
    run.save()
    said = []
    for word in ("shard-1", "part-1", "-1"):
        store.word = word if strategy.rank == 1 else "nothing"
        run.train()
        try:
            run.save()
        except (TrainingFailed, MemoryError) as error:
            left = sorted(p.name for p in (folder / "failing/run").iterdir() if any(p.iterdir()))
            said.append([type(error).__name__, str(error), left])
    store.word = "nothing"
    run.train()
    run.save()
    run.strategy.gather(None)
    store.word = "000000005/shard-0" if strategy.rank == 1 else "nothing"  # read wrong by one rank
    again = Training(Checkpoints(store, "run"), strategy=strategy, seed=3)
    step = again.resume()
    found = strategy.gather((said, steps_of(run.checkpoints), step, again.checkpoints.damaged))
    if strategy.rank == 0:
        (folder / "failed.json").write_text(json.dumps(found))


class _Unlisted(FolderStore):
    """Cannot be listed while `away`."""

    away = False

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        if self.away:
            raise OutsideError("it cannot be listed")
        return super().list(prefix)


def discard(folder: Path, strategy: ProcessGroup) -> None:
    """Remove the later of three checkpoints though one rank sees none; all fail if it has to."""
    store = _Unlisted(folder / "store")
    run = Training(Checkpoints(store, "run"), strategy=strategy)
    for _ in range(3):
        run.train()
        run.save()
    store.away = strategy.rank == 1
    run.saver.discard_after(2)
    store.away = strategy.rank == 0
    words = ""
    try:
        run.saver.discard_after(1)
    except (TrainingFailed, OutsideError) as error:
        words = str(error)
    store.away = False
    said = strategy.gather((words, steps_of(run.checkpoints)))
    if strategy.rank == 0:
        (folder / "discarded.json").write_text(json.dumps(said))


def do(jobs: list[Job]) -> None:
    verbs = {"save": save, "load": load, "fail": fail, "discard": discard}
    for folder, verb, name in jobs:
        strategy = strategy_of(name)
        verbs[verb](folder, strategy)
    strategy.close()
