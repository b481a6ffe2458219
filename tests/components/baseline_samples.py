"""Tasks of every kind on one table, with a rule each, for the tests of baselines."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn

from components.common.settings import BaselineSettings
from components.train_baseline.contract import Ground
from training_core import (
    BinaryTask,
    MulticlassTask,
    MultilabelTask,
    Preprocessor,
    RegressionTask,
    SequenceTask,
    TabularPreprocessor,
    TrainingSettings,
)
from training_core.task import PADDING, Arrays, Task


def rows(count: int, *, seed: int = 0) -> pd.DataFrame:
    """A shop and two numbers; every label follows from them, with a little noise."""
    random = np.random.default_rng(seed)
    shop = random.choice(["north", "south", "west"], count)
    height, width = random.normal(170, 10, count), random.normal(3, 2, count)
    score = (height - 170) / 5 + 2 * (shop == "north") - 0.7 + random.normal(0, 0.5, count)
    return pd.DataFrame(
        {
            "shop": shop,
            "height": height,
            "width": width,
            "bought": (score > 0).astype("float64"),
            "size": np.array(["small", "medium", "large"])[np.digitize(score, [-1.5, 1.5])],
            "wide": (width + random.normal(0, 0.5, count) > 5).astype("float64"),
            "price": 5000 + 1000 * score,
            "text": [[1, 2, 1, 3] if place % 4 else [1, 2] for place in range(count)],
        }
    )


class Network(nn.Module):
    """A line, to any number of outputs."""

    centre, scale = 0.0, 1.0

    def __init__(self, preprocessor: Preprocessor, outputs: int) -> None:
        super().__init__()
        assert isinstance(preprocessor, TabularPreprocessor)
        self.embedding = nn.Embedding(preprocessor.cardinalities[0], 4)
        self.head = nn.Linear(4 + len(preprocessor.number_columns), outputs)
        self.alone = outputs == 1

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        outputs: Tensor = self.head(torch.cat([self.embedding(categories[:, 0]), numbers], 1))
        return self.centre + self.scale * (outputs.squeeze(1) if self.alone else outputs)


class OfTable:
    """What the tasks on the table share."""

    outputs = 1

    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(categories=["shop"], numbers=["height", "width"])

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Network(preprocessor, self.outputs)


class Bought(OfTable, BinaryTask):
    label = "bought"

    def rule(self, frame: pd.DataFrame) -> npt.NDArray[Any] | None:
        return np.where(frame["height"] > 170, 0.8, 0.2)


class Size(OfTable, MulticlassTask):
    label = "size"
    classes: ClassVar[list[str]] = ["small", "never seen", "medium", "large"]
    outputs = 4

    def rule(self, frame: pd.DataFrame) -> npt.NDArray[Any] | None:
        tall = (frame["height"] > 170).to_numpy()[:, None]
        return np.where(tall, [0.1, 0.0, 0.4, 0.5], [0.5, 0.0, 0.4, 0.1])


class BoughtAndWide(OfTable, MultilabelTask):
    label = "bought"
    labels: ClassVar[list[str]] = ["bought", "wide"]
    outputs = 2

    def rule(self, frame: pd.DataFrame) -> npt.NDArray[Any] | None:
        return np.stack([np.where(frame[c] > at, 0.8, 0.2) for c, at in AVERAGES], axis=1)


AVERAGES = [("height", 170), ("width", 5)]


class Price(OfTable, RegressionTask):
    label = "price"

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        network = Network(preprocessor, 1)
        network.centre, network.scale = 5000.0, 1000.0  # or it would begin far from every price
        return network

    def rule(self, frame: pd.DataFrame) -> npt.NDArray[Any] | None:
        return 5000 + 200 * (frame["height"].to_numpy() - 170)


class Tokens:
    """Texts as tokens, filled up with zeros."""

    columns: ClassVar[list[str]] = ["text"]

    def fit(self, train: pd.DataFrame) -> Tokens:
        return self

    def transform(self, frame: pd.DataFrame) -> Arrays:
        return {"tokens": padded(frame, 0)}

    def state_dict(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> Tokens:
        return cls()


def padded(frame: pd.DataFrame, filling: int) -> npt.NDArray[np.int64]:
    return np.array([[*text, *[filling] * (4 - len(text))] for text in frame["text"]])


class NextToken(SequenceTask):
    label = "text"

    def preprocessor(self) -> Preprocessor:
        return Tokens()

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Speaker()

    def target(self, frame: pd.DataFrame) -> npt.NDArray[np.int64]:
        return np.roll(padded(frame, PADDING), -1, axis=1)


class Speaker(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Embedding(5, 8), nn.Linear(8, 5))

    def forward(self, tokens: Tensor) -> Tensor:
        outputs: Tensor = self.layers(tokens)
        return outputs


TASKS: tuple[type[Task], ...] = (Bought, Size, BoughtAndWide, Price, NextToken)


def ground(
    task: Task, *, count: int = 600, train: pd.DataFrame | None = None, **settings: Any
) -> Ground:
    """Rows to learn from, and others to be asked about."""
    given = {
        "table": ["shop"],
        "trees_rounds": 12,
        "trees_lr": 0.3,
        "input_independent_steps": 60,
        **settings,
    }
    return Ground(
        task,
        rows(count) if train is None else train,
        {"validation": rows(200, seed=1), "holdout": rows(300, seed=2)},
        settings=BaselineSettings.model_validate(given),
        training=TrainingSettings.model_validate({"batch_size": 128, "optimiser": {"lr": 0.05}}),
    )
