"""Will it be bought? Learned from a number and a kind."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn

from training_core import BinaryTask, Preprocessor, TabularPreprocessor


class SmallNetwork(nn.Module):
    """An embedding, two numbers, eight hidden units, one logit."""

    def __init__(self, cardinality: int, numbers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(cardinality, 3)
        self.layers = nn.Sequential(nn.Linear(3 + numbers, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        embedded = self.embedding(categories[:, 0])
        return self.layers(torch.cat([embedded, numbers], dim=1)).squeeze(1)


class SmallTask(BinaryTask):
    """Bought or not."""

    label = "bought"

    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(categories=["kind"], numbers=["number", "noise"])

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        assert isinstance(preprocessor, TabularPreprocessor)
        return SmallNetwork(preprocessor.cardinalities[0], len(preprocessor.number_columns))

    def rule(self, frame: pd.DataFrame) -> npt.NDArray[np.float64]:
        return np.where(frame["number"] > 0, 0.7, 0.3)
