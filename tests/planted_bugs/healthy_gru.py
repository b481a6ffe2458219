"""The load of a boiler in the next hour, from two series of its last twenty."""

from __future__ import annotations

import numpy as np
import pandas as pd
from torch import Tensor, nn

from tests.planted_bugs.contract import Healthy
from tests.planted_bugs.preprocessors import SeriesPreprocessor
from tests.planted_bugs.tables import settings
from training_core.task import Preprocessor, RegressionTask

LENGTH, WIDTH = 20, 24


def rows(seed: int, count: int = 800) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    hours = np.arange(LENGTH)
    phase, slope = random.uniform(0, 6, (count, 1)), random.normal(0, 0.08, (count, 1))
    load = np.sin(hours / 3 + phase) + slope * hours + random.normal(0, 0.1, (count, LENGTH))
    outside = 10 + 4 * random.normal(size=(count, 1)) + random.normal(0, 1, (count, LENGTH))
    following = np.sin(LENGTH / 3 + phase) + slope * LENGTH - 0.1 * (outside[:, -1:] - 10)
    return pd.DataFrame(
        {"load": list(load), "outside": list(outside), "next_load": following[:, 0]}
    )


class Network(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gru = nn.GRU(channels, WIDTH, batch_first=True)
        self.out = nn.Linear(WIDTH, 1)

    def forward(self, series: Tensor) -> Tensor:
        hidden, _ = self.gru(series)
        return self.out(hidden[:, -1]).squeeze(1)


class Boiler(RegressionTask):
    label = "next_load"

    def preprocessor(self) -> Preprocessor:
        return SeriesPreprocessor(["load", "outside"])

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Network(len(preprocessor.columns))


HEALTHY = Healthy(
    name="gru", task=Boiler, rows=rows, training=settings(lr=5e-3, batch_size=32, epochs=15)
)
