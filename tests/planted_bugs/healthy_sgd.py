"""A table with BatchNorm, trained with SGD and Nesterov momentum, the rate falling in steps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from tests.planted_bugs.contract import Healthy
from tests.planted_bugs.tables import number_names, numbers_of, settings
from training_core.settings import ScheduleSettings
from training_core.tabular import TabularPreprocessor
from training_core.task import BinaryTask, Preprocessor

COLUMNS = 6


def rows(seed: int, count: int = 1_200) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    x, frame = numbers_of(random, count, COLUMNS)
    ring = (x[:, 0] ** 2 + x[:, 1] ** 2) - 1.5 + 0.5 * x[:, 2] + random.normal(0, 0.3, count)
    return frame.assign(accepted=ring > 0)


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(COLUMNS, 64, bias=False), nn.Linear(64, 32, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm1d(64), nn.BatchNorm1d(32)])
        self.out = nn.Linear(32, 1)

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        hidden = torch.relu(self.norms[0](self.first(numbers)))
        hidden = torch.relu(self.norms[1](self.second(hidden)))
        return self.out(hidden).squeeze(1)


class Accepted(BinaryTask):
    label = "accepted"

    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(categories=[], numbers=number_names(COLUMNS))

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Network()


HEALTHY = Healthy(
    name="sgd",
    task=Accepted,
    rows=rows,
    training=settings(lr=0.1, name="sgd", weight_decay=1e-4).model_copy(
        update={"schedule": ScheduleSettings(shape="step", warmup=0.02)}
    ),
)
