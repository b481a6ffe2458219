"""Will a delivery be late?"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from training_core import BinaryTask, Preprocessor, TabularPreprocessor


class LateNetwork(nn.Module):
    """Embeddings and numbers, sixteen hidden units, one logit."""

    def __init__(self, cardinalities: list[int], numbers: int) -> None:
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(size, 4) for size in cardinalities)
        inputs = 4 * len(cardinalities) + numbers
        self.layers = nn.Sequential(nn.Linear(inputs, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        embedded = [table(categories[:, i]) for i, table in enumerate(self.embeddings)]
        return self.layers(torch.cat([*embedded, numbers], dim=1)).squeeze(1)


class LateDelivery(BinaryTask):
    """Late or not."""

    label = "late"

    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(
            categories=["carrier", "depot", "shelf"],
            numbers=["local_hour", "amount", "distance", "temperature", "items", "weight"],
        )

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        assert isinstance(preprocessor, TabularPreprocessor)
        return LateNetwork(preprocessor.cardinalities, len(preprocessor.number_columns))
