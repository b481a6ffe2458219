"""Optimiser and learning-rate schedule."""

from __future__ import annotations

import math

import torch
from torch import nn

from training_core.settings import OptimiserSettings, ScheduleSettings


def build_optimiser(model: nn.Module, settings: OptimiserSettings) -> torch.optim.AdamW:
    """AdamW in which matrices decay and vectors (norms, biases) do not."""
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=settings.lr,
        betas=settings.betas,
        fused=True,
    )


def learning_rate(step: int, *, steps: int, peak: float, schedule: ScheduleSettings) -> float:
    """The rate of a step: a pure function, so there is no state to save.

    Args:
        step: Counted from 0.
        steps: Of the whole run; the last step is `steps - 1`.
        peak: The highest rate.
        schedule: Shape, warm-up and end.
    """
    warmup = round(schedule.warmup * steps)
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    if schedule.shape == "constant":
        return peak
    done = min(1.0, (step - warmup) / max(1, steps - 1 - warmup))
    left = (1 - done) if schedule.shape == "linear" else (1 + math.cos(math.pi * done)) / 2
    return peak * (schedule.final + (1 - schedule.final) * left)
