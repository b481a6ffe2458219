"""Seventy patients, three measurements."""

from __future__ import annotations

import numpy as np
import pandas as pd
from torch import nn

from tests.planted_bugs.contract import Healthy
from tests.planted_bugs.tables import Layers, number_names, numbers_of, settings
from training_core.tabular import TabularPreprocessor
from training_core.task import BinaryTask, Preprocessor

COLUMNS = 3


def rows(seed: int, count: int = 70) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    x, frame = numbers_of(random, count, COLUMNS)
    score = 2 * x[:, 0] - x[:, 1] + random.normal(0, 0.7, count)
    return frame.assign(ill=(score > 0.3).astype(np.int64))


class Illness(BinaryTask):
    label = "ill"

    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(categories=[], numbers=number_names(COLUMNS))

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Layers(COLUMNS, 16, 1, dropout=0.1)


HEALTHY = Healthy(
    name="tiny", task=Illness, rows=rows, training=settings(lr=1e-2, batch_size=16, epochs=40)
)
