"""A small convolutional network with BatchNorm."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn


class Network(nn.Module):
    """Stages of convolution, BatchNorm and ReLU, each half as large as the one before.

    Args:
        height, width: Of an image; halved by each stage, so at least 2 to the power of the stages.
        channels: Of each stage.
        classes: How many logits come out.
        dropout: Before the last layer.
    """

    def __init__(
        self, height: int, width: int, *, channels: Sequence[int], classes: int, dropout: float
    ) -> None:
        super().__init__()
        stages: list[nn.Module] = []
        for before, after in pairwise([1, *channels]):
            stages += [
                nn.Conv2d(before, after, 3, padding=1, bias=False),  # BatchNorm has a bias
                nn.BatchNorm2d(after),
                nn.ReLU(),
                nn.MaxPool2d(2),
            ]
        shrunk = 2 ** len(channels)
        if min(height, width) < shrunk:
            raise ValueError(f"{len(channels)} stages need images of {shrunk} pixels a side")
        self.stages = nn.Sequential(*stages)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(channels[-1] * (height // shrunk) * (width // shrunk), classes)

    def forward(self, image: Tensor) -> Tensor:
        """Score N images.

        Args:
            image: float32 [N, 1, height, width].

        Returns:
            Logits, float [N, classes].
        """
        seen = torch.flatten(self.stages(image), 1)
        logits: Tensor = self.head(self.dropout(seen))
        return logits
