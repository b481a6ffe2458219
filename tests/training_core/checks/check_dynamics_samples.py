"""Small real tasks of several kinds for the checks of the dynamics: rows, networks, settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from training_core.checks.subject import Subject
from training_core.settings import CheckSettings, TrainingSettings
from training_core.task import (
    Arrays,
    BinaryTask,
    MulticlassTask,
    MultilabelTask,
    Preprocessor,
    RegressionTask,
    SequenceTask,
    Task,
)


class Stacked:
    """Stacks a column of lists, or several of numbers, into one array; nothing is learned."""

    def __init__(self, columns: list[str], *, name: str, dtype: str = "float32") -> None:
        self._columns, self.name, self.dtype = columns, name, dtype

    @property
    def columns(self) -> list[str]:
        return self._columns

    def fit(self, train: pd.DataFrame) -> Self:
        return self

    def transform(self, frame: pd.DataFrame) -> Arrays:
        if len(self.columns) == 1:
            values = np.stack(frame[self.columns[0]].tolist())
        else:
            values = frame[self.columns].to_numpy()
        return {self.name: values.astype(self.dtype)}

    def state_dict(self) -> dict[str, Any]:
        return {"columns": self.columns, "name": self.name, "dtype": self.dtype}

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> Self:
        return cls(state["columns"], name=state["name"], dtype=state["dtype"])


NUMBERS = [f"x{i}" for i in range(8)]


def numbers(count: int, seed: int, *, columns: int = 8) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns of numbers, and a score that depends on four of them, partly by a product."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(count, columns))
    frame = pd.DataFrame(x, columns=[f"x{i}" for i in range(columns)])
    return frame, 1.5 * x[:, 0] - x[:, 1] + x[:, 2] * x[:, 3] + 0.3 * random.normal(size=count)


class Table(nn.Module):
    """A small network on numbers; one output is squeezed."""

    def __init__(self, inputs: int, outputs: int = 1, *, hidden: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, hidden),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, outputs),
        )

    def forward(self, numbers: Tensor) -> Tensor:
        outputs: Tensor = self.layers(numbers)
        return outputs.squeeze(1)


class Binary(BinaryTask):
    label = "y"

    def preprocessor(self) -> Preprocessor:
        return Stacked(NUMBERS, name="numbers")

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Table(8)


def binary_rows(count: int = 800, *, seed: int = 0, flipped: float = 0.0) -> pd.DataFrame:
    frame, score = numbers(count, seed)
    flip = np.random.default_rng(seed + 1).random(count) < flipped
    return frame.assign(y=((score > 0) ^ flip).astype("float64"))


def rare_rows(count: int = 4000, *, seed: int = 0) -> pd.DataFrame:
    frame, score = numbers(count, seed)
    return frame.assign(y=(score > np.quantile(score, 0.98)).astype("float64"))


def random_rows(count: int = 800, *, seed: int = 0) -> pd.DataFrame:
    """Labels that have nothing to do with the inputs."""
    frame, _ = numbers(count, seed)
    return frame.assign(y=np.random.default_rng(seed + 1).integers(0, 2, count).astype("float64"))


class Price(RegressionTask):
    """Mean 5,000, deviation 2,000; the network knows the scale."""

    label = "y"

    def preprocessor(self) -> Preprocessor:
        return Stacked(NUMBERS, name="numbers")

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Scaled(Table(8))

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return ((outputs - target) / 2000).square()


class Scaled(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, numbers: Tensor) -> Tensor:
        outputs: Tensor = self.inner(numbers)
        return outputs * 2000 + 5000


def price_rows(count: int = 800, *, seed: int = 0) -> pd.DataFrame:
    frame, score = numbers(count, seed)
    return frame.assign(y=5000 + 2000 * score / score.std())


class Tags(MultilabelTask):
    label = "a"
    labels = ("a", "b", "c")

    def preprocessor(self) -> Preprocessor:
        return Stacked(NUMBERS, name="numbers")

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Table(8, 3, hidden=33)


def tag_rows(count: int = 800, *, seed: int = 0) -> pd.DataFrame:
    frame, score = numbers(count, seed)
    return frame.assign(
        a=(score > 0) * 1.0, b=(frame["x4"] > 1) * 1.0, c=(frame["x5"] + frame["x6"] > 0) * 1.0
    )


class Shapes(nn.Module):
    """A small convolutional network with BatchNorm and a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.body = nn.Conv2d(8, 8, 3, padding=1)
        self.head = nn.Linear(8, 3)

    def forward(self, pixels: Tensor) -> Tensor:
        hidden = torch.relu(self.norm(self.stem(pixels.float() / 127.5 - 1)))
        hidden = torch.relu(hidden + self.body(hidden))
        outputs: Tensor = self.head(hidden.mean((2, 3)))
        return outputs


class Images(MulticlassTask):
    """Horizontal stripes, vertical stripes or none, in noise; uint8 images in a column."""

    label = "shape"
    classes = ("lines", "columns", "none")

    def preprocessor(self) -> Preprocessor:
        return Stacked(["image"], name="pixels", dtype="uint8")

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Shapes()


def image_rows(count: int = 300, *, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    kind = random.integers(0, 3, count)
    stripes = np.tile([60.0, -60.0], 4)
    images = random.normal(128, 30, (count, 1, 8, 8))
    images[kind == 0] += stripes[:, None]
    images[kind == 1] += stripes
    pixels = images.clip(0, 255).astype("uint8")
    return pd.DataFrame({"image": list(pixels), "shape": np.array(Images.classes)[kind]})


class Language(nn.Module):
    """A causal transformer of one layer, with tied weights."""

    def __init__(self, tokens: int = 12, width: int = 24, length: int = 12) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        self.position = nn.Parameter(torch.randn(length, width) * 0.02)
        self.layer = nn.TransformerEncoderLayer(
            width, 2, dim_feedforward=48, batch_first=True, norm_first=True, dropout=0.1
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, tokens, bias=False)
        nn.init.normal_(self.embedding.weight, std=0.05)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool).triu(1)
        hidden = self.layer(self.embedding(tokens) + self.position[:length], src_mask=mask)
        outputs: Tensor = self.head(self.norm(hidden))
        return outputs


class Text(SequenceTask):
    """Each token follows from the one before, most of the time; the end of a row is padding."""

    label = "text"

    def preprocessor(self) -> Preprocessor:
        return Stacked(["text"], name="tokens", dtype="int64")

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Language()

    def target(self, frame: pd.DataFrame) -> np.ndarray:
        tokens = np.stack(frame["text"].tolist()).astype("int64")
        return np.concatenate([tokens[:, 1:], np.full((len(tokens), 1), -100)], axis=1)


def text_rows(count: int = 400, *, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    tokens = np.zeros((count, 12), dtype="int64")
    tokens[:, 0] = random.integers(0, 12, count)
    for i in range(1, 12):
        follows = (tokens[:, i - 1] * 5 + 3) % 12
        tokens[:, i] = np.where(random.random(count) < 0.8, follows, random.integers(0, 12, count))
    return pd.DataFrame({"text": list(tokens)})


HEALTHY: dict[str, tuple[Callable[[], Task], Callable[..., pd.DataFrame], dict[str, Any]]] = {
    "binary": (Binary, binary_rows, {"optimiser": {"lr": 3e-3}}),
    "rare": (Binary, rare_rows, {"batch_size": 128, "optimiser": {"lr": 3e-3}}),
    "price": (Price, price_rows, {"optimiser": {"lr": 2e-3}}),
    "tags": (Tags, tag_rows, {"optimiser": {"name": "sgd", "lr": 0.05}}),
    "images": (Images, image_rows, {"batch_size": 32, "optimiser": {"lr": 3e-3}}),
    "text": (Text, text_rows, {"batch_size": 32, "optimiser": {"name": "muon", "lr": 0.02}}),
}


def subject(
    name: str = "binary",
    *,
    task: Task | None = None,
    rows: pd.DataFrame | None = None,
    checks: dict[str, Any] | None = None,
    seed: int = 0,
    **training: Any,
) -> Subject:
    """Return a healthy subject, or one changed in what is given; `training` by its keys."""
    make, draw, settings = HEALTHY[name]
    merged: dict[str, Any] = {"epochs": 20, "batch_size": 64, **settings, "seed": seed}
    for key, value in training.items():
        merged[key] = {**merged.get(key, {}), **value} if isinstance(value, dict) else value
    return Subject(
        task or make(),
        draw(seed=seed) if rows is None else rows,
        training=TrainingSettings.model_validate(merged),
        settings=CheckSettings.model_validate({"input_steps": 120, **(checks or {})}),
    )
