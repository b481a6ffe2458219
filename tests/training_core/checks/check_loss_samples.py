"""Small healthy tasks of every kind, and a subject of each, for tests of the checks of the loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from training_core.checks.contract import Check, Finding
from training_core.checks.runner import make
from training_core.checks.subject import Subject
from training_core.settings import CheckSettings, TrainingSettings
from training_core.task import (
    PADDING,
    Arrays,
    BinaryTask,
    MulticlassTask,
    MultilabelTask,
    Preprocessor,
    RegressionTask,
    SequenceTask,
    Task,
)


class Columns:
    """Raw columns as arrays, as they are; a column of arrays is stacked."""

    def __init__(self, **columns: list[str]) -> None:
        self.arrays = columns

    @property
    def columns(self) -> list[str]:
        return sorted({name for names in self.arrays.values() for name in names})

    def fit(self, train: pd.DataFrame) -> Columns:
        return self

    def transform(self, frame: pd.DataFrame) -> Arrays:
        arrays: Arrays = {}
        for name, (first, *others) in self.arrays.items():
            if others:
                arrays[name] = np.array(frame[[first, *others]], np.float32)
            elif frame[first].dtype == object:
                arrays[name] = np.stack(frame[first].to_list())
            else:
                arrays[name] = np.array(frame[[first]], np.float32)
        return arrays

    def state_dict(self) -> dict[str, Any]:
        return dict(self.arrays)

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> Columns:
        return cls(**state)


NUMBERS = [f"x{i}" for i in range(6)]


def table(count: int, *, seed: int = 0) -> pd.DataFrame:
    """Six numbers; a yes or no, a class of three, two labels and a value that follow from them."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(count, 6))
    score = 2 * x[:, 0] - x[:, 1] + np.abs(x[:, 2])
    noisy = score + random.normal(0, 0.5, count)
    frame = pd.DataFrame(x, columns=NUMBERS)
    frame["yes"] = (noisy > 0.8).astype(float)
    frame["class"] = np.digitize(noisy, [-0.5, 1.5])
    frame["other"] = (x[:, 3] + random.normal(0, 0.3, count) > 1).astype(float)
    frame["value"] = 5000 + 800 * noisy
    return frame


class Net(nn.Module):
    """Two layers over the numbers."""

    def __init__(self, outputs: int, *, width: int = 32, dropout: float = 0.1) -> None:
        super().__init__()
        self.outputs = outputs
        self.body = nn.Sequential(
            nn.Linear(len(NUMBERS), width), nn.LayerNorm(width), nn.ReLU(), nn.Dropout(dropout)
        )
        self.head = nn.Linear(width, outputs)

    def forward(self, numbers: Tensor) -> Tensor:
        said: Tensor = self.head(self.body(numbers))
        return said.squeeze(1) if self.outputs == 1 else said


class Changed(nn.Module):
    """A network whose outputs a bug changes."""

    def __init__(self, inner: nn.Module, change: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.inner, self.change = inner, change

    def forward(self, **arrays: Tensor) -> Tensor:
        return self.change(self.inner(**arrays))


class _OfNumbers(Task):
    outputs = 1
    width, dropout = 32, 0.1

    def preprocessor(self) -> Columns:
        return Columns(numbers=NUMBERS)

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Net(self.outputs, width=self.width, dropout=self.dropout)


class YesNo(_OfNumbers, BinaryTask):
    label = "yes"


class Three(_OfNumbers, MulticlassTask):
    label, classes, outputs = "class", (0, 1, 2), 3


class Two(_OfNumbers, MultilabelTask):
    label, labels, outputs = "yes", ("yes", "other"), 2


class FarValue(_OfNumbers, RegressionTask):
    """Mean 5,600, deviation 1,800: nobody has standardised it."""

    label = "value"


class Value(FarValue):
    """Standardised inside the loss; predictions are in the target's unit."""

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return (outputs - (target - 5600) / 1800).square()

    def predict(self, outputs: Tensor) -> Tensor:
        return outputs.float() * 1800 + 5600


def pictures(count: int, *, seed: int = 0) -> pd.DataFrame:
    """Noisy 8 × 8 pictures, uint8, with a bright bar: upright, lying or none."""
    random = np.random.default_rng(seed)
    kinds = random.integers(0, 3, count)
    images = random.integers(0, 120, (count, 8, 8), dtype=np.uint8)
    for image, kind, place in zip(images, kinds, random.integers(0, 8, count), strict=True):
        if kind == 1:
            image[:, place] += 100
        elif kind == 2:
            image[place, :] += 100
    return pd.DataFrame({"image": pd.Series(list(images), dtype=object), "bar": kinds})


class Bars(MulticlassTask):
    """A convolution with BatchNorm over raw pixels."""

    label, classes = "bar", (0, 1, 2)

    def preprocessor(self) -> Columns:
        return Columns(image=["image"])

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        class Convolution(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layers = nn.Sequential(
                    nn.Conv2d(1, 8, 3, padding=1),
                    nn.BatchNorm2d(8),
                    nn.ReLU(),
                    nn.Conv2d(8, 8, 3, padding=1, stride=2),
                    nn.BatchNorm2d(8),
                    nn.ReLU(),
                    nn.Flatten(),
                    nn.Linear(128, 3),
                )

            def forward(self, image: Tensor) -> Tensor:
                said: Tensor = self.layers(image.unsqueeze(1).float() / 255)
                return said

        return Convolution()


LETTERS = 12


def sentences(count: int, *, seed: int = 0, length: int = 12) -> pd.DataFrame:
    """Tokens of which each mostly follows from the one before; lengths differ."""
    random = np.random.default_rng(seed)
    tokens = np.zeros((count, length + 1), dtype=np.int64)
    tokens[:, 0] = random.integers(1, LETTERS, count)
    for t in range(1, length + 1):
        follows = tokens[:, t - 1] % (LETTERS - 1) + 1
        chance = random.random(count) < 0.2
        tokens[:, t] = np.where(chance, random.integers(1, LETTERS, count), follows)
    ends = random.integers(5, length + 2, count)
    tokens[np.arange(length + 1) >= ends[:, None]] = 0
    return pd.DataFrame({"tokens": pd.Series(list(tokens), dtype=object)})


class _Sentence(Columns):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        return {"tokens": np.stack(frame["tokens"].to_list())[:, :-1].copy()}


class Words(SequenceTask):
    """A causal transformer with LayerNorm whose output is tied to its embedding."""

    label = "tokens"

    def preprocessor(self) -> Columns:
        return _Sentence(tokens=["tokens"])

    def target(self, frame: pd.DataFrame) -> np.ndarray[Any, Any]:
        following = np.stack(frame["tokens"].to_list())[:, 1:]
        return np.where(following == 0, PADDING, following)

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        class Transformer(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.embedding = nn.Embedding(LETTERS, 32)
                nn.init.normal_(self.embedding.weight, std=0.1)
                self.places = nn.Parameter(torch.zeros(12, 32))
                self.layer = nn.TransformerEncoderLayer(
                    32, 2, 64, dropout=0.1, batch_first=True, norm_first=True
                )
                self.norm = nn.LayerNorm(32)
                self.bias = nn.Parameter(torch.zeros(LETTERS))

            def forward(self, tokens: Tensor) -> Tensor:
                length = tokens.shape[1]
                mask = nn.Transformer.generate_square_subsequent_mask(length)
                seen = self.embedding(tokens) + self.places[:length]
                said: Tensor = self.norm(self.layer(seen, src_mask=mask, is_causal=True))
                return said @ self.embedding.weight.T + self.bias

        return Transformer()


MAKERS: dict[type[Task], Any] = {Bars: pictures, Words: sentences}


def rows_of(task: Task, count: int, *, seed: int = 0) -> pd.DataFrame:
    """Return raw rows of one of the tasks here, or of one that inherits from it."""
    for kind, maker in MAKERS.items():
        if isinstance(task, kind):
            rows: pd.DataFrame = maker(count, seed=seed)
            return rows
    return table(count, seed=seed)


def subject_of(
    task: Task,
    count: int = 600,
    *,
    rows: pd.DataFrame | None = None,
    checks: dict[str, Any] | None = None,
    **training: Any,
) -> Subject:
    """Return a subject of which the training is short."""
    base = {"batch_size": 64, "optimiser": {"lr": 3e-3}}
    return Subject(
        task,
        rows_of(task, count) if rows is None else rows,
        training=TrainingSettings.model_validate({**base, **training}),
        settings=CheckSettings.model_validate({"input_steps": 150, **(checks or {})}),
    )


def found(check: type[Check], task: Task, count: int = 600, **how: Any) -> Finding:
    """Make a check of a task, as the runner does."""
    return make(check(), subject_of(task, count, **how))
