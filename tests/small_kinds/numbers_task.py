"""A small task of each kind whose rows are a few numbers."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from training_core import (
    MulticlassTask,
    MultilabelTask,
    Preprocessor,
    RegressionTask,
    TabularPreprocessor,
    Task,
)


class SmallNetwork(nn.Module):
    """Numbers, sixteen hidden units, some outputs."""

    def __init__(self, numbers: int, outputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(numbers, 16), nn.ReLU(), nn.Linear(16, outputs))

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        found: Tensor = self.layers(numbers)
        return found.squeeze(1) if found.shape[1] == 1 else found


class _Small(Task):
    """Learned from two numbers."""

    label = "label"
    outputs: ClassVar[int]

    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(categories=[], numbers=["number", "other"])

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        assert isinstance(preprocessor, TabularPreprocessor)
        return SmallNetwork(len(preprocessor.number_columns), self.outputs)


class SmallMulticlass(_Small, MulticlassTask):
    """Low, middle or high."""

    classes = ("low", "middle", "high")
    outputs = 3


class SmallMultilabel(_Small, MultilabelTask):
    """Two answers."""

    labels = ("label", "second")
    outputs = 2


class SmallRegression(_Small, RegressionTask):
    """A number."""

    outputs = 1
