"""Which department a message is for: a transformer over its words, padding masked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from tests.planted_bugs.contract import Healthy
from tests.planted_bugs.preprocessors import PAD, TokenPreprocessor
from tests.planted_bugs.tables import settings
from training_core.task import MulticlassTask, Preprocessor

DEPARTMENTS = ["bills", "repairs", "returns"]
LENGTH, WIDTH, HEADS = 20, 32, 2


def rows(seed: int, count: int = 1_000) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    department = random.integers(0, 3, count)
    messages = []
    for each in department:
        length = int(random.integers(5, LENGTH + 1))
        words = [f"word_{i}" for i in random.integers(0, 20, length)]
        for place in random.choice(length, 2, replace=False):
            words[place] = f"{DEPARTMENTS[each]}_{random.integers(0, 3)}"
        if random.random() < 0.3:
            words[0] = f"{DEPARTMENTS[(each + 1) % 3]}_0"  # something is said of another one
        messages.append(words)
    return pd.DataFrame({"words": messages, "department": np.array(DEPARTMENTS)[department]})


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.into, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(0.1)

    def forward(self, hidden: Tensor, real: Tensor) -> Tensor:
        parts = self.into(self.norms[0](hidden)).unflatten(2, (3, HEADS, WIDTH // HEADS))
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        found = nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=real[:, None, None, :]
        )
        hidden = hidden + self.dropout(self.out(found.transpose(1, 2).flatten(2)))
        inner = nn.functional.gelu(self.wide(self.norms[1](hidden)))
        return hidden + self.dropout(self.narrow(inner))


class Network(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(size, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.norm, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(DEPARTMENTS))

    def forward(self, tokens: Tensor) -> Tensor:
        real = self.real(tokens)
        hidden = self.words(tokens) + self.places(torch.arange(LENGTH, device=tokens.device))
        for block in self.blocks:
            hidden = block(hidden, real)
        return self.out(self.pooled(self.norm(hidden), tokens != PAD))

    def real(self, tokens: Tensor) -> Tensor:
        """Say which places may be attended to, bool [N, length]."""
        return tokens != PAD

    def pooled(self, hidden: Tensor, real: Tensor) -> Tensor:
        """Return the mean over words, float [N, width]."""
        weights = real.unsqueeze(2).float()
        return (hidden * weights).sum(1) / weights.sum(1).clamp_min(1)


class Messages(MulticlassTask):
    label = "department"
    classes = DEPARTMENTS

    def preprocessor(self) -> Preprocessor:
        return TokenPreprocessor("words", length=LENGTH)

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        assert isinstance(preprocessor, TokenPreprocessor)
        return Network(preprocessor.size)


HEALTHY = Healthy(
    name="transformer", task=Messages, rows=rows, training=settings(lr=2e-3, batch_size=32)
)
