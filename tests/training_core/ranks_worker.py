"""What each process of test_ranks.py does under torchrun; rank 0 writes down what came out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from training_samples import Sales, trainer, weights

from infra.folder import FolderStore
from training_core.checkpoint import Checkpoints
from training_core.errors import TrainingFailed
from training_core.evaluation import evaluate
from training_core.loop import Trainer
from training_core.parallel import DataParallel, choose_device, choose_strategy

COUNT = 41  # in batches of 8 the last one of an epoch has a single row, so one rank has none


class _FailingStore(FolderStore):
    """Fails without a word, on one rank."""

    def put(self, key: str, data: bytes) -> None:
        raise MemoryError


def main(folder: Path) -> None:
    strategy = choose_strategy(choose_device("cpu"))
    assert isinstance(strategy, DataParallel)
    assert strategy.world_size == 2
    found: dict[str, Any] = {}

    def fit(name: str, run: Trainer) -> None:
        outcome = run.fit()
        found[name] = {
            "weights": weights(run.model),
            "losses": [point.loss for point in outcome.curve],
            "norms": [point.gradient_norm for point in outcome.curve],
            "evaluations": outcome.evaluations,
            "steps": outcome.steps,
            "resumed_from": outcome.resumed_from,
            "damaged": strategy.gather(run.checkpoints.damaged if run.checkpoints else []),
        }

    common: dict[str, Any] = {"count": COUNT, "strategy": strategy}
    for accumulation in (1, 3):
        fit(f"accumulation {accumulation}", trainer(accumulation=accumulation, **common))

    run = trainer(noting=True, **common)
    evaluate(run.task, run.model.module, run.validation, strategy=strategy)
    found["evaluated"] = strategy.gather(run.model.module.evaluated)

    dropout: dict[str, Any] = {**common, "task": Sales()}  # its masks need each rank's state
    fit("undisturbed", trainer(**dropout))
    only_rank_1 = {"should_stop": lambda: strategy.rank == 1}
    fit("stopped", trainer(folder / "stopped", hooks=only_rank_1, **dropout))
    fit("resumed", trainer(folder / "stopped", **dropout))

    fit("to be damaged", trainer(folder / "damaged", hooks=only_rank_1, **dropout))
    if strategy.rank == 0:
        shard = folder / "damaged/run/000000005/rank-1.pt"
        shard.write_bytes(shard.read_bytes()[:-1])
    strategy.gather(None)
    fit("damaged", trainer(folder / "damaged", **dropout))

    kind = _FailingStore if strategy.rank == 1 else FolderStore
    run = trainer(place=Checkpoints(kind(folder / "failing"), "run"), **common)
    try:
        run.fit()
    except (TrainingFailed, MemoryError) as error:
        found["failing"] = strategy.gather(type(error).__name__)
    if strategy.rank == 0:
        torch.save(found, folder / "found.pt")
    strategy.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
