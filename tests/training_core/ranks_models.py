"""Networks that several ranks train: with blocks, statistics, and buffers of their own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Blocks(nn.Module):
    """Repeated blocks with BatchNorm and dropout, as a sharded or recomputed model has them."""

    def __init__(self, *, dropout: float = 0.0, norm: bool = False) -> None:
        super().__init__()
        self.first = nn.Linear(2, 16)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Linear(16, 16),
                nn.BatchNorm1d(16) if norm else nn.LayerNorm(16),
                nn.ReLU(),
                nn.Dropout(dropout),
            )
            for _ in range(2)
        )
        self.head = nn.Linear(16, 1)

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        hidden = self.first(numbers)
        for block in self.blocks:
            hidden = hidden + block(hidden)
        outputs: Tensor = self.head(hidden)
        return outputs.squeeze(1)


def blocks(**changes: Any) -> Blocks:
    torch.manual_seed(3)
    return Blocks(**changes)


class Averaging(nn.Module):
    """Keeps an average of what it sees, which differs from rank to rank."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = blocks()
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        if self.training:
            self.seen.lerp_(numbers.detach().mean(0), 0.5)
        outputs: Tensor = self.inner(categories, numbers + self.seen)
        return outputs


class Backwards(nn.Module):
    """Layers that are registered in another order than they are used in."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(200, 1)
        self.first = nn.Linear(2, 200)
        self.second = nn.Linear(200, 200)

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        outputs: Tensor = self.head(self.second(self.first(numbers).relu()).relu())
        return outputs.squeeze(1)
