"""Four faults of a machine, of which several may be there at once."""

from __future__ import annotations

import numpy as np
import pandas as pd
from torch import nn

from tests.planted_bugs.contract import Healthy
from tests.planted_bugs.tables import Layers, number_names, numbers_of, settings
from training_core.tabular import TabularPreprocessor
from training_core.task import MultilabelTask, Preprocessor

COLUMNS = 8
FAULTS = ["leak", "noise", "heat", "wear"]


def rows(seed: int, count: int = 1_000) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    x, frame = numbers_of(random, count, COLUMNS)
    scores = {
        "leak": x[:, 0] + x[:, 1] - 1,
        "noise": x[:, 2] * x[:, 3],
        "heat": x[:, 4] - 1.2,
        "wear": x[:, 0] - x[:, 5],
    }
    noise = random.normal(0, 0.2, (len(FAULTS), count))
    labels = {name: (scores[name] + noise[i] > 0).astype(int) for i, name in enumerate(FAULTS)}
    return frame.assign(**labels)


class Faults(MultilabelTask):
    label = "leak"
    labels = FAULTS

    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(categories=[], numbers=number_names(COLUMNS))

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Layers(COLUMNS, 64, 64, len(FAULTS), dropout=0.1)


HEALTHY = Healthy(name="multilabel", task=Faults, rows=rows, training=settings())
