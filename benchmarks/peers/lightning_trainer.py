"""Lightning's Trainer with its own logging, evaluation, clipping and ModelCheckpoint."""

from __future__ import annotations

from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers.logger import DummyLogger
from torch import Tensor

from benchmarks.peers.run import Rows, Run, Trained, loader_of, validation_of
from benchmarks.workloads import CLIP_NORM, KEEP_BEST, optimiser_of, schedule_of


class Module(LightningModule):
    """The workload as Lightning wants it."""

    def __init__(self, run: Run, trained: Trained) -> None:
        super().__init__()
        self.model, self.run_, self.trained = run.model, run, trained

    def training_step(self, batch: Rows, index: int) -> Tensor:
        loss = self.run_.workload.mean_loss(self.model(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def validation_step(self, batch: Rows, index: int) -> None:
        loss = self.run_.workload.mean_loss(self.model(batch[0]), batch[1])
        self.log("validation_loss", loss, sync_dist=False)
        self.trained.evaluations.append(loss.item())

    def configure_optimizers(self) -> dict[str, Any]:
        optimiser = optimiser_of(self.model, self.run_.workload.lr)
        schedule = schedule_of(optimiser, self.run_.steps)
        return {
            "optimizer": optimiser,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }


class ListLogger(DummyLogger):
    """Keeps losses in a list, as everybody here does."""

    def __init__(self, losses: list[float]) -> None:
        super().__init__()
        self.losses = losses

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        if "loss" in metrics:
            self.losses.append(metrics["loss"])


def train(run: Run) -> Trained:
    """Train on every rank."""
    trained = Trained()
    best = ModelCheckpoint(
        dirpath=run.folder, monitor="validation_loss", save_top_k=KEEP_BEST, filename="{step}"
    )
    trainer = Trainer(
        accelerator="cpu",
        devices=run.world_size,
        strategy="ddp" if run.world_size > 1 else "auto",
        max_steps=run.steps,
        max_epochs=1,
        accumulate_grad_batches=run.accumulation,
        gradient_clip_val=CLIP_NORM,
        log_every_n_steps=run.log_every,
        # counted in batches
        val_check_interval=run.workload.evaluate_every if run.features else None,
        limit_val_batches=None if run.features else 0,
        callbacks=[best] if run.features else [],
        enable_checkpointing=run.features,
        num_sanity_val_steps=0,
        logger=ListLogger(trained.losses),
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
    )
    trainer.fit(Module(run, trained), loader_of(run), validation_of(run))
    trained.checkpoints = len(list(run.folder.glob("*.ckpt")))
    torch.set_grad_enabled(True)
    return trained
