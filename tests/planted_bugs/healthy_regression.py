"""Rent of a flat, a number of about unit scale, from a table."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
from torch import nn

from tests.planted_bugs.contract import Healthy
from tests.planted_bugs.tables import Layers, number_names, numbers_of, settings
from training_core.tabular import TabularPreprocessor
from training_core.task import Preprocessor, RegressionTask

COLUMNS = 6


def rows(seed: int, count: int = 1_000) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    x, frame = numbers_of(random, count, COLUMNS)
    rent = 0.8 * x[:, 0] + 0.6 * np.sin(2 * x[:, 1]) + 0.5 * x[:, 2] * x[:, 3]
    return frame.assign(rent=rent + 0.4 + random.normal(0, 0.15, count))


class Rent(RegressionTask):
    label = "rent"
    width = 64

    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(categories=[], numbers=number_names(COLUMNS))

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Layers(COLUMNS, self.width, self.width, 1)

    def larger(self, factor: int) -> RegressionTask:
        wider = copy.copy(self)
        wider.width = self.width * factor
        return wider


HEALTHY = Healthy(name="regression", task=Rent, rows=rows, training=settings())
