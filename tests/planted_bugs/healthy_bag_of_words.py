"""Did they like it? The mean of a review's word embeddings."""

from __future__ import annotations

import numpy as np
import pandas as pd
from torch import Tensor, nn

from tests.planted_bugs.contract import Healthy
from tests.planted_bugs.preprocessors import PAD, TokenPreprocessor
from tests.planted_bugs.tables import settings
from training_core.task import BinaryTask, Preprocessor

LENGTH = 16


def rows(seed: int, count: int = 1_000) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    worth = np.random.default_rng(7).normal(size=60)  # the language does not change
    reviews, liked = [], []
    for _ in range(count):
        words = random.integers(0, len(worth), int(random.integers(4, LENGTH + 1)))
        reviews.append([f"word_{i}" for i in words])
        liked.append(int(worth[words].mean() + random.normal(0, 0.1) > 0))
    return pd.DataFrame({"review": reviews, "liked": liked})


class Bag(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.words = nn.Embedding(size, 16, padding_idx=PAD)
        self.layers = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.layers(self.mean(tokens)).squeeze(1)

    def mean(self, tokens: Tensor) -> Tensor:
        """Return the mean embedding of the words that are there, float [N, 16]."""
        real = (tokens != PAD).unsqueeze(2).float()
        return (self.words(tokens) * real).sum(1) / real.sum(1).clamp_min(1)


class Reviews(BinaryTask):
    label = "liked"

    def preprocessor(self) -> Preprocessor:
        return TokenPreprocessor("review", length=LENGTH)

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        assert isinstance(preprocessor, TokenPreprocessor)
        return Bag(preprocessor.size)


HEALTHY = Healthy(
    name="bag_of_words", task=Reviews, rows=rows, training=settings(lr=1e-2, batch_size=32)
)
