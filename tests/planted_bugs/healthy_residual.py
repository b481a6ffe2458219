"""A deep network: twelve residual blocks with dropout, on a table."""

from __future__ import annotations

import numpy as np
import pandas as pd
from torch import Tensor, nn

from tests.planted_bugs.contract import Healthy
from tests.planted_bugs.tables import number_names, numbers_of, settings
from training_core.tabular import TabularPreprocessor
from training_core.task import BinaryTask, Preprocessor

COLUMNS, WIDTH, BLOCKS = 8, 32, 12


def rows(seed: int, count: int = 1_000) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    x, frame = numbers_of(random, count, COLUMNS)
    score = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + x[:, 3] + random.normal(0, 0.2, count)
    return frame.assign(churned=(score > 0).astype(np.float32))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(0.1)

    def forward(self, hidden: Tensor) -> Tensor:
        inner = nn.functional.gelu(self.wide(self.norm(hidden)))
        return hidden + self.dropout(self.narrow(inner))


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(COLUMNS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.norm, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 1)

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        hidden = self.first(numbers)
        for block in self.blocks:
            hidden = block(hidden)
        return self.out(self.norm(hidden)).squeeze(1)


class Churn(BinaryTask):
    label = "churned"

    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(categories=[], numbers=number_names(COLUMNS))

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Network()


HEALTHY = Healthy(name="residual", task=Churn, rows=rows, training=settings(lr=1e-3))
