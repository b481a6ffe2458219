"""The hand-written loop on DistributedDataParallel, with no_sync between microbatches."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from benchmarks.peers.run import Run, Trained, loader_of
from benchmarks.workloads import CLIP_NORM, optimiser_of, schedule_of


def train(run: Run) -> Trained:
    """Train on every rank; alone, without the wrapper."""
    alone, loss_of = run.world_size == 1, run.workload.mean_loss
    model = run.model if alone else DistributedDataParallel(run.model)
    optimiser = optimiser_of(model, run.workload.lr)
    schedule = schedule_of(optimiser, run.steps)
    trained, total = Trained(), torch.zeros(())
    model.train()
    batches = iter(loader_of(run))
    for step in range(1, run.steps + 1):
        for part in range(run.accumulation):
            inputs, target = next(batches)
            last = part == run.accumulation - 1
            with nullcontext() if last or alone else model.no_sync():
                loss = loss_of(model(inputs), target) / run.accumulation
                loss.backward()
            total += loss.detach()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad(set_to_none=True)
        if step % run.log_every == 0:
            trained.losses.append(total.item() / run.log_every)
            total.zero_()
    return trained
