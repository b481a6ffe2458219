"""Fraud: one row in fifty is positive."""

from __future__ import annotations

import numpy as np
import pandas as pd
from torch import nn

from tests.planted_bugs.contract import Healthy
from tests.planted_bugs.tables import Layers, number_names, numbers_of, settings
from training_core.tabular import TabularPreprocessor
from training_core.task import BinaryTask, Preprocessor

COLUMNS = 6


def rows(seed: int, count: int = 2_000) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    x, frame = numbers_of(random, count, COLUMNS)
    score = 2 * x[:, 0] + 1.5 * np.abs(x[:, 1]) + x[:, 2] + random.normal(0, 0.5, count)
    return frame.assign(fraud=(score > np.quantile(score, 0.98)).astype(np.int64))


class Fraud(BinaryTask):
    label = "fraud"

    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(categories=[], numbers=number_names(COLUMNS))

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Layers(COLUMNS, 48, 24, 1, dropout=0.1)


HEALTHY = Healthy(name="rare", task=Fraud, rows=rows, training=settings(batch_size=128))
