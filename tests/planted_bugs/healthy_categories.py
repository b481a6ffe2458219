"""Which of four plans a customer takes: categories with embeddings beside numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from tests.planted_bugs.contract import Healthy
from tests.planted_bugs.tables import settings
from training_core.tabular import TabularPreprocessor
from training_core.task import MulticlassTask, Preprocessor

PLANS = ["basic", "family", "student", "works"]
CITIES = [f"city_{i}" for i in range(12)]


def rows(seed: int, count: int = 1_500) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    city, job = random.integers(0, 12, count), random.choice(["none", "part", "full"], count)
    age, income = random.uniform(18, 70, count), random.lognormal(10, 0.5, count)
    scores = np.stack(
        [
            np.zeros(count),
            (city % 3 == 0) * 2.0 + (age > 30),
            3.0 * (age < 27) + (job == "none"),
            2.5 * (job == "full") + (income > 25_000) - (city % 3 == 0),
        ]
    )
    plan = (scores + random.gumbel(0, 0.4, scores.shape)).argmax(0)
    return pd.DataFrame(
        {
            "city": np.array(CITIES)[city],
            "job": np.where(random.random(count) < 0.03, None, job),
            "age": age.round(),
            "income": np.where(random.random(count) < 0.1, np.nan, income),
            "plan": np.array(PLANS)[plan],
        }
    )


class Network(nn.Module):
    def __init__(self, cardinalities: list[int], numbers: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(count, 6) for count in cardinalities)
        self.layers = nn.Sequential(
            nn.Linear(6 * len(cardinalities) + numbers, 64),
            nn.LayerNorm(64),
            nn.GELU(),
            nn.Dropout(0.1),
            nn.Linear(64, len(PLANS)),
        )

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        embedded = [table(categories[:, i]) for i, table in enumerate(self.tables)]
        return self.layers(torch.cat([*embedded, numbers], 1))


class Plans(MulticlassTask):
    label = "plan"
    classes = PLANS

    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(categories=["city", "job"], numbers=["age", "income"])

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        assert isinstance(preprocessor, TabularPreprocessor)
        return Network(preprocessor.cardinalities, len(preprocessor.number_columns))


HEALTHY = Healthy(name="categories", task=Plans, rows=rows, training=settings())
