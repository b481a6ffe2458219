"""The models that the benchmarks train; each tells a clock when a training forward begins."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F  # noqa: N812 (the field's name for it)
from torch import Tensor, nn


class Clock:
    """Notes when the training forwards number `first` and `last` begin, counted from 0.

    It is ticked by the model, because every trainer calls that: none needs a callback for it.

    Attributes:
        began, ended: Wall time and this process's CPU time (all threads), in seconds.
    """

    def __init__(self) -> None:
        self.calls = 0
        self.first, self.last = -1, -1
        self.began = self.ended = (math.nan, math.nan)

    def tick(self) -> None:
        """A training forward begins."""
        if self.calls == self.first:
            self.began = self.now()
        elif self.calls == self.last:
            self.ended = self.now()
        self.calls += 1

    @staticmethod
    def now() -> tuple[float, float]:
        """Wall time and CPU time, once a GPU has done what it was given."""
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        return time.perf_counter(), time.process_time()


class Network(nn.Module, ABC):
    """A model that ticks a clock."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()

    def forward(self, inputs: Tensor) -> Tensor:
        if self.training:
            self.clock.tick()
        return self.outputs(inputs)

    @abstractmethod
    def outputs(self, inputs: Tensor) -> Tensor:
        """The model's own forward."""


class MLP(Network):
    """54 features to one logit."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(54, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1)
        )

    def outputs(self, inputs: Tensor) -> Tensor:
        return self.body(inputs).squeeze(1)


class CNN(Network):
    """3×32×32 to ten logits."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before, after, stride in ((3, 16, 1), (16, 32, 2), (32, 64, 2)):
            layers += [
                nn.Conv2d(before, after, 3, stride, padding=1, bias=False),
                nn.BatchNorm2d(after),
                nn.ReLU(),
            ]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(64, 10)

    def outputs(self, inputs: Tensor) -> Tensor:
        return self.head(self.body(inputs).mean((2, 3)))


class Block(nn.Module):
    """Attention and a feed-forward network, each behind a norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        count, length, width = x.shape
        shaped = self.qkv(self.norm1(x)).view(count, length, 3, self.heads, width // self.heads)
        q, k, v = shaped.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(count, length, width))
        return x + self.mlp(self.norm2(x))


class GPT(Network):
    """Tokens [N, T] to logits [N, T, vocabulary].

    Args:
        tied: As in GPT-2: embedding and head share their weights, and all start small.
    """

    def __init__(
        self,
        *,
        vocabulary: int = 256,
        length: int = 64,
        width: int = 128,
        heads: int = 4,
        layers: int = 2,
        tied: bool = False,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.head.weight = self.tokens.weight
            for parameter in self.parameters():
                if parameter.ndim >= 2:
                    nn.init.normal_(parameter, std=0.02)

    def outputs(self, inputs: Tensor) -> Tensor:
        x = self.tokens(inputs) + self.positions.weight[: inputs.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
