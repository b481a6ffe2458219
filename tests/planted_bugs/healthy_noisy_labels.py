"""A survey whose answer is wrong in three rows of ten."""

from __future__ import annotations

import numpy as np
import pandas as pd
from torch import nn

from tests.planted_bugs.contract import Healthy
from tests.planted_bugs.tables import Layers, number_names, numbers_of, settings
from training_core.tabular import TabularPreprocessor
from training_core.task import BinaryTask, Preprocessor

COLUMNS = 5


def rows(seed: int, count: int = 1_500) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    x, frame = numbers_of(random, count, COLUMNS)
    answer = x[:, 0] + x[:, 1] > 0
    wrong = random.random(count) < 0.3
    return frame.assign(content=(answer ^ wrong).astype(np.float64))


class Survey(BinaryTask):
    label = "content"

    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(categories=[], numbers=number_names(COLUMNS))

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Layers(COLUMNS, 32, 32, 1, dropout=0.2)


HEALTHY = Healthy(name="noisy_labels", task=Survey, rows=rows, training=settings(epochs=10))
