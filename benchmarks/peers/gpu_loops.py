"""Ours and the hand-written loop on a GPU: compiled, in any precision."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader

from benchmarks.peers.ours import trainer_of
from benchmarks.peers.run import GivenOrder, RowsDataset, Run, as_it_is
from benchmarks.workloads import CLIP_NORM, optimiser_of, schedule_of


def train_ours(run: Run, *, device: str, precision: str, recompute: bool) -> list[float]:
    """Return the logged losses."""
    trainer = trainer_of(
        run,
        device=device,
        precision=precision,
        compile=device == "cuda",
        activation_checkpointing=recompute,
        deterministic="off",
    )
    return [point.loss for point in trainer.fit().curve]


def train_plain(run: Run, *, device: str, precision: str) -> list[float]:
    """Return the logged losses."""
    model, loss_of, on_gpu = run.model.to(device), run.workload.mean_loss, device == "cuda"
    if on_gpu:
        model.outputs = torch.compile(model.outputs)  # type: ignore[method-assign]
    optimiser = optimiser_of(model, run.workload.lr)
    schedule = schedule_of(optimiser, run.steps)
    scaler = torch.amp.GradScaler(device, enabled=precision == "fp16")
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)
    batches = DataLoader(
        RowsDataset(run.workload.inputs, run.workload.target),
        batch_size=run.workload.batch_size,
        sampler=GivenOrder(run.order()),
        collate_fn=as_it_is,
        pin_memory=on_gpu,
    )
    losses, total = [], torch.zeros((), device=device)
    model.train()
    for step, (inputs, target) in enumerate(batches, 1):
        inputs, target = (t.to(device, non_blocking=True) for t in (inputs, target))
        with torch.autocast(device, dtype=dtype, enabled=dtype is not None):
            loss = loss_of(model(inputs), target)
        scaler.scale(loss).backward()
        scaler.unscale_(optimiser)
        nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        scaler.step(optimiser)
        scaler.update()
        schedule.step()
        optimiser.zero_grad(set_to_none=True)
        total += loss.detach()
        if step % run.log_every == 0 or step == run.steps:
            losses.append(total.item() / ((step - 1) % run.log_every + 1))
            total.zero_()
    return losses
