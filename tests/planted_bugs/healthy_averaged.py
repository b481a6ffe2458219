"""A network that predicts with a running average of its weights (EMA), kept in buffers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from tests.planted_bugs.contract import Healthy
from tests.planted_bugs.tables import number_names, numbers_of, settings
from training_core.tabular import TabularPreprocessor
from training_core.task import Preprocessor, RegressionTask

COLUMNS = 5
DECAY = 0.95


def rows(seed: int, count: int = 1_000) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    x, frame = numbers_of(random, count, COLUMNS)
    yield_ = x[:, 0] - 0.7 * x[:, 1] + 0.5 * x[:, 2] ** 2 + random.normal(0, 0.2, count)
    return frame.assign(harvest=yield_)


class Averaged(nn.Module):
    """Trains its layers; in eval mode it computes with their average over the steps."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(COLUMNS, 64), nn.ReLU(), nn.Linear(64, 1))
        for name, value in self.layers.named_parameters():
            self.register_buffer(self.place(name), value.detach().clone())

    @staticmethod
    def place(name: str) -> str:
        """Return the name of a weight's average."""
        return f"average_{name.replace('.', '_')}"

    def follow(self) -> None:
        """Move the averages towards the weights."""
        with torch.no_grad():
            for name, value in self.layers.named_parameters():
                getattr(self, self.place(name)).lerp_(value, 1 - DECAY)

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        if self.training:
            self.follow()
            return self.layers(numbers).squeeze(1)
        averages = {n: getattr(self, self.place(n)) for n, _ in self.layers.named_parameters()}
        return torch.func.functional_call(self.layers, averages, (numbers,)).squeeze(1)


class Harvest(RegressionTask):
    label = "harvest"

    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(categories=[], numbers=number_names(COLUMNS))

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Averaged()


HEALTHY = Healthy(name="averaged", task=Harvest, rows=rows, training=settings())
