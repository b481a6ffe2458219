"""The loop that a good engineer writes by hand: no evaluation and no checkpoints."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.peers.run import Run, Trained, loader_of
from benchmarks.workloads import CLIP_NORM, optimiser_of, schedule_of


def train(run: Run) -> Trained:
    """Train on one process."""
    model, loss_of = run.model, run.workload.mean_loss
    optimiser = optimiser_of(model, run.workload.lr)
    schedule = schedule_of(optimiser, run.steps)
    trained, total = Trained(), torch.zeros(())
    model.train()
    for step, (inputs, target) in enumerate(loader_of(run), 1):
        loss = loss_of(model(inputs), target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad(set_to_none=True)
        total += loss.detach()
        if step % run.log_every == 0:
            trained.losses.append(total.item() / run.log_every)
            total.zero_()
    return trained
