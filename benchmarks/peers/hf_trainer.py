"""Hugging Face's Trainer with its own logging, evaluation, clipping and checkpoints."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import PrinterCallback, Trainer, TrainingArguments

from benchmarks.peers.run import Rows, Run, Trained, loader_of, validation_of
from benchmarks.workloads import CLIP_NORM, KEEP_BEST, optimiser_of, schedule_of


def named(batch: Rows) -> dict[str, Tensor]:
    """Collate into the mapping that Trainer wants."""
    return {"inputs": batch[0], "target": batch[1]}


class Measured(Trainer):
    """Trainer with the workload's data and loss."""

    run: Run

    def get_train_dataloader(self) -> DataLoader[Any]:
        return loader_of(self.run, named)

    def get_eval_dataloader(self, eval_dataset: object = None) -> DataLoader[Any]:
        return validation_of(self.run, named)

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: object = None,
    ) -> Any:
        outputs = model(inputs["inputs"])
        loss = self.run.workload.mean_loss(outputs, inputs["target"])
        return (loss, outputs) if return_outputs else loss

    def prediction_step(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        prediction_loss_only: bool,
        ignore_keys: object = None,
    ) -> tuple[Tensor, None, None]:
        return self.compute_loss(model, inputs).detach(), None, None


def train(run: Run) -> Trained:
    """Train on one process."""
    workload = run.workload
    optimiser = optimiser_of(run.model, workload.lr)
    arguments = TrainingArguments(
        output_dir=str(run.folder),
        use_cpu=True,
        max_steps=run.steps,
        per_device_train_batch_size=workload.batch_size,
        max_grad_norm=CLIP_NORM,
        logging_steps=run.log_every,
        logging_nan_inf_filter=False,  # it would look at the loss in every step
        eval_strategy="steps",
        eval_steps=workload.evaluate_every,
        save_strategy="steps",
        save_steps=workload.evaluate_every,
        save_total_limit=KEEP_BEST,
        metric_for_best_model="eval_loss",
        greater_is_better=False,
        report_to=[],
        disable_tqdm=True,
        log_level="error",
        dataloader_pin_memory=False,
    )
    trainer = Measured(
        model=run.model,
        args=arguments,
        train_dataset=loader_of(run).dataset,
        eval_dataset=validation_of(run).dataset,
        optimizers=(optimiser, schedule_of(optimiser, run.steps)),
    )
    trainer.remove_callback(PrinterCallback)  # what is logged is in its history
    trainer.run = run
    trainer.train()
    history = trainer.state.log_history
    return Trained(
        losses=[entry["loss"] for entry in history if "loss" in entry],
        evaluations=[entry["eval_loss"] for entry in history if "eval_loss" in entry],
        checkpoints=len(list(run.folder.glob("checkpoint-*"))),
    )
