"""Optimisers."""

from __future__ import annotations

import torch
from torch import nn

from training_core.settings import OptimiserSettings


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
