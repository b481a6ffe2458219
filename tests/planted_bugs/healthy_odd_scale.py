"""Price of a car in euros, 5,000 on average: learned in deviations, predicted in euros."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from tests.planted_bugs.contract import Healthy
from tests.planted_bugs.tables import Layers, number_names, numbers_of, settings
from training_core.tabular import TabularPreprocessor
from training_core.task import Preprocessor, RegressionTask

COLUMNS = 5
MEAN, DEVIATION = 5_000.0, 2_000.0


def rows(seed: int, count: int = 1_000) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    x, frame = numbers_of(random, count, COLUMNS)
    score = 0.8 * np.tanh(2 * x[:, 0]) + 0.6 * x[:, 1] + 0.2 * x[:, 2].clip(0)
    price = MEAN + DEVIATION * (score + random.normal(0, 0.2, count))
    return frame.assign(price=price.round())


class Price(RegressionTask):
    label = "price"

    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(categories=[], numbers=number_names(COLUMNS))

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Layers(COLUMNS, 64, 32, 1)

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        difference = outputs - (target - MEAN) / DEVIATION
        return torch.nn.functional.huber_loss(
            difference, torch.zeros_like(difference), reduction="none"
        )

    def predict(self, outputs: Tensor) -> Tensor:
        return outputs.float() * DEVIATION + MEAN


HEALTHY = Healthy(name="odd_scale", task=Price, rows=rows, training=settings())
