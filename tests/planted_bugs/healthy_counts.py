"""Bicycles hired in an hour: a count, learned by the Poisson likelihood, which may be negative."""

from __future__ import annotations

import numpy as np
import pandas as pd
from torch import Tensor, nn

from tests.planted_bugs.contract import Healthy
from tests.planted_bugs.tables import Layers, number_names, numbers_of, settings
from training_core.tabular import TabularPreprocessor
from training_core.task import Preprocessor, RegressionTask

COLUMNS = 4


def rows(seed: int, count: int = 1_200) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    x, frame = numbers_of(random, count, COLUMNS)
    rate = np.exp(1.0 + 0.6 * np.sin(2 * x[:, 0]) + 0.5 * x[:, 1].clip(-2, 2))
    frame.loc[random.random(count) < 0.05, "x3"] = np.nan  # a sensor that fails now and then
    return frame.assign(hired=random.poisson(rate))


class Hires(RegressionTask):
    label = "hired"

    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(categories=[], numbers=number_names(COLUMNS))

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        assert isinstance(preprocessor, TabularPreprocessor)
        return Layers(len(preprocessor.number_columns), 48, 48, 1)

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return nn.functional.poisson_nll_loss(outputs, target, reduction="none")

    def predict(self, outputs: Tensor) -> Tensor:
        return outputs.float().exp()


HEALTHY = Healthy(name="counts", task=Hires, rows=rows, training=settings())
