"""As many columns as rows: 400 genes of 400 samples, of which six say something of the type."""

from __future__ import annotations

import numpy as np
import pandas as pd
from torch import nn

from tests.planted_bugs.contract import Healthy
from tests.planted_bugs.tables import Layers, number_names, numbers_of, settings
from training_core.tabular import TabularPreprocessor
from training_core.task import BinaryTask, Preprocessor

COLUMNS = 400


def rows(seed: int, count: int = 400) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    _, frame = numbers_of(random, count, COLUMNS)
    type_b = random.random(count) < 0.4
    for gene in range(6):
        frame[f"x{gene}"] += 1.4 * frame[f"x{gene}"].std() * type_b
    return frame.assign(type_b=type_b.astype(np.int64))


class Genes(BinaryTask):
    label = "type_b"

    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(categories=[], numbers=number_names(COLUMNS))

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Layers(COLUMNS, 32, 1, dropout=0.3)


HEALTHY = Healthy(
    name="wide",
    task=Genes,
    rows=rows,
    training=settings(lr=1e-3, batch_size=32, epochs=20, weight_decay=0.1),
)
