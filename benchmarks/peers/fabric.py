"""Lightning Fabric: the hand-written loop with its wrappers, evaluation and best checkpoints."""

from __future__ import annotations

from pathlib import Path

import torch
from lightning.fabric import Fabric

from benchmarks.peers.run import Best, Run, Trained, loader_of
from benchmarks.workloads import CLIP_NORM, evaluate, optimiser_of, schedule_of


def train(run: Run) -> Trained:
    """Train on one process."""
    workload = run.workload
    fabric = Fabric(accelerator="cpu", devices=1)
    own = optimiser_of(run.model, workload.lr)
    schedule = schedule_of(own, run.steps)
    model, optimiser = fabric.setup(run.model, own)
    batches = fabric.setup_dataloaders(loader_of(run), use_distributed_sampler=False)
    trained, total, best = Trained(), torch.zeros(()), Best(run.folder)

    def save(path: Path) -> None:
        fabric.save(path, {"model": model, "optimiser": optimiser, "schedule": schedule})

    model.train()
    for step, (inputs, target) in enumerate(batches, 1):
        loss = workload.mean_loss(model(inputs), target)
        fabric.backward(loss)
        fabric.clip_gradients(model, optimiser, max_norm=CLIP_NORM)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad(set_to_none=True)
        total += loss.detach()
        if step % run.log_every == 0:
            trained.losses.append(total.item() / run.log_every)
            total.zero_()
        if step % workload.evaluate_every == 0:
            trained.evaluations.append(evaluate(model, workload))
            best.add(trained.evaluations[-1], step, save, Path.unlink)
    trained.checkpoints = len(best.kept)
    return trained
