"""This project's trainer, with everything on that it does by default."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from benchmarks.peers.run import Run, Trained
from benchmarks.workloads import (
    BETAS,
    CLIP_NORM,
    KEEP_BEST,
    SEED,
    WARMUP,
    WEIGHT_DECAY,
    Workload,
)
from infra.folder import FolderStore
from training_core.checkpoints.catalogue import Checkpoints
from training_core.examples import Examples
from training_core.loop import Trainer
from training_core.parallel.choose import choose_device, choose_strategy
from training_core.parallel.strategy import Strategy
from training_core.settings import TrainingSettings


class MeasuredTask:
    """The part of the task contract that a trainer calls."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return self.workload.loss(outputs, target)

    def metrics(self, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        return {}


def settings_of(run: Run, **changes: Any) -> TrainingSettings:
    """Return the recipe as settings of ours, with some of them changed."""
    recipe = {
        "epochs": run.steps * run.step_size / len(run.workload.inputs),
        "batch_size": run.step_size,
        "accumulation": run.accumulation,
        "processes": run.world_size,
        "threads": 1,
        "device": "cpu",
        "precision": "fp32",
        "seed": SEED,
        "log_every": run.log_every,
        "evaluate_every": run.workload.evaluate_every if run.features else run.steps,
        "optimiser": {
            "lr": run.workload.lr,
            "weight_decay": WEIGHT_DECAY,
            "betas": BETAS,
            "clip_norm": CLIP_NORM,
        },
        "schedule": {"shape": "cosine", "warmup": WARMUP, "final": 0.0},
        "checkpoints": {"keep_last": 1, "keep_best": KEEP_BEST},
    }
    return TrainingSettings.model_validate({**recipe, **changes})


def trainer_of(run: Run, *, strategy: Strategy | None = None, **changes: Any) -> Trainer:
    """Return our trainer, ready to fit.

    Args:
        run: What to train.
        strategy: None: as settings and environment say.
        changes: Of settings.
    """
    workload = run.workload
    settings = settings_of(run, **changes)
    return Trainer(
        task=MeasuredTask(workload),
        model=run.model,
        train=Examples({"inputs": workload.inputs}, workload.target),
        validation=Examples({"inputs": workload.validation[0]}, workload.validation[1]),
        settings=settings,
        strategy=strategy or choose_strategy(choose_device(settings.device), settings),
        checkpoints=Checkpoints(FolderStore(run.folder), "run") if run.features else None,
    )


def train(run: Run) -> Trained:
    """Train on every rank."""
    trainer = trainer_of(run)
    run.model.clock.calls = 0  # one forward came before training: it settles DDP's buckets
    outcome = trainer.fit()
    return Trained(
        losses=[point.loss for point in outcome.curve],
        evaluations=[metrics["loss"] for _, metrics in outcome.evaluations],
        checkpoints=len(list(run.folder.rglob("manifest.json"))),
    )
