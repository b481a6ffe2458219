"""accelerate: the hand-written loop with its wrappers, evaluation and best checkpoints."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState

from benchmarks.peers.run import Best, Run, Trained, loader_of
from benchmarks.workloads import CLIP_NORM, evaluate, optimiser_of, schedule_of


def train(run: Run) -> Trained:
    """Train on every rank."""
    workload = run.workload
    GradientState._reset_state()  # accelerate keeps the accumulation of the first run otherwise
    AcceleratorState._reset_state()
    accelerator = Accelerator(
        cpu=True,
        gradient_accumulation_steps=run.accumulation,
        step_scheduler_with_optimizer=False,  # it would step once for each rank
    )
    own = optimiser_of(run.model, workload.lr)
    model, optimiser = accelerator.prepare(run.model, own)
    # the loader gives this rank's rows already, so it is not prepared, which would share them again
    schedule = schedule_of(own, run.steps)
    accelerator.register_for_checkpointing(schedule)
    trained, total, best = Trained(), torch.zeros(()), Best(run.folder)
    step = 0
    model.train()
    for part, (inputs, target) in enumerate(loader_of(run), 1):
        with accelerator.accumulate(model):
            loss = workload.mean_loss(model(inputs), target)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), CLIP_NORM)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        total += loss.detach() / run.accumulation
        if part % run.accumulation:
            continue
        schedule.step()
        step += 1
        if step % run.log_every == 0:
            trained.losses.append(total.item() / run.log_every)
            total.zero_()
        if run.features and step % workload.evaluate_every == 0:
            trained.evaluations.append(evaluate(model, workload))
            best.add(
                trained.evaluations[-1], step, lambda p: accelerator.save_state(str(p)), _remove
            )
    trained.checkpoints = len(best.kept)
    return trained


def _remove(folder: Path) -> None:
    shutil.rmtree(folder)
