"""Healthy tasks of several kinds, whose parts the tests of the data checks break."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from check_data_texts import Early, Letters, texts
from torch import Tensor, nn

from training_core.checks.contract import Check, Finding
from training_core.checks.runner import make
from training_core.checks.subject import Subject
from training_core.settings import CheckSettings, TrainingSettings
from training_core.tabular import TabularPreprocessor
from training_core.task import (
    Arrays,
    BinaryTask,
    MulticlassTask,
    MultilabelTask,
    Preprocessor,
    RegressionTask,
    Task,
)

TRAINING = TrainingSettings(batch_size=32, device="cpu")
QUICK = CheckSettings(input_steps=20)


def look(check: type[Check], task: Task, rows: pd.DataFrame) -> Finding:
    """What one check says of a task, as the runner makes it."""
    return make(check(), Subject(task, rows, training=TRAINING, settings=QUICK))


# ---- tables ----------------------------------------------------------------------------------


def table(count: int = 400, *, seed: int = 0) -> pd.DataFrame:
    """Houses: an area, an age, a distance in metres, a kind, a number of rooms with nulls."""
    random = np.random.default_rng(seed)
    kind = random.choice(["flat", "house", "hut"], count)
    area, age = random.gamma(4, 25, count), random.normal(40, 15, count)
    rooms = np.where(random.random(count) < 0.1, np.nan, np.round(area / 25) + 1)
    value = area / 50 - age / 20 + (kind == "house") + random.normal(0, 0.5, count)
    return pd.DataFrame(
        {
            "kind": kind,
            "area": area,
            "age": age,
            "distance": random.integers(0, 40_000, count),
            "rooms": rooms,
            "price": 5000 + 2000 * value,
            "dear": (value > 0).astype("float64"),
            "far": (value + random.normal(0, 1, count) > 1).astype("float64"),
        }
    )


NUMBERS = ["area", "age", "distance", "rooms"]


class TableNetwork(nn.Module):
    def __init__(self, preprocessor: TabularPreprocessor, outputs: int = 1) -> None:
        super().__init__()
        self.embedding = nn.Embedding(preprocessor.cardinalities[0], 4)
        width = 4 + len(preprocessor.number_columns)
        self.body = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, outputs))
        self.outputs = outputs

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        inputs = torch.cat([self.embedding(categories[:, 0]), numbers.float()], 1)
        outputs: Tensor = self.body(inputs)
        return outputs if self.outputs > 1 else outputs.squeeze(1)


class Houses(BinaryTask):
    """Dear or not."""

    label = "dear"

    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(categories=["kind"], numbers=NUMBERS)

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        assert isinstance(preprocessor, TabularPreprocessor)
        return TableNetwork(preprocessor)


def using(kind: type[TabularPreprocessor], task: type[Task] = Houses, **options: Any) -> Task:
    """The task with another preprocessor."""

    class Broken(task):  # type: ignore[misc, valid-type]
        def preprocessor(self) -> Preprocessor:
            made = {"categories": ["kind"], "numbers": NUMBERS, **options}
            return kind(**made)

    return Broken()  # type: ignore[no-any-return]


class Prices(RegressionTask):
    """A target of an odd scale."""

    label = "price"
    preprocessor = Houses.preprocessor
    build_model = Houses.build_model  # type: ignore[assignment]


class Both(MultilabelTask):
    """Two labels."""

    label = "dear"
    labels = ("dear", "far")
    preprocessor = Houses.preprocessor

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        assert isinstance(preprocessor, TabularPreprocessor)
        return TableNetwork(preprocessor, outputs=2)


class Jittered(Houses):
    """Augmented with a little noise."""

    def augment(
        self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> tuple[dict[str, Tensor], Tensor]:
        noise = torch.randn(arrays["numbers"].shape, generator=generator)
        return {**arrays, "numbers": arrays["numbers"] + 0.1 * noise}, target


# ---- images ----------------------------------------------------------------------------------


def images(count: int = 300, *, seed: int = 0) -> pd.DataFrame:
    """Arrows to the left or to the right, or a bar: uint8 images, noisy, in six places."""
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        kind = int(random.integers(3))
        image = random.integers(0, 60, (12, 12))
        top, left = int(random.integers(1, 4)), int(random.integers(3, 5))
        if kind == 2:
            image[top : top + 7, left + 1 : left + 3] += 180
        else:
            arrow = np.array([[max(0, 3 - abs(3 - y)) >= x for x in range(5)] for y in range(7)])
            image[top : top + 7, left : left + 5] += 180 * (arrow if kind else arrow[:, ::-1])
        rows.append((image.astype(np.uint8), ["left", "right", "bar"][kind]))
    return pd.DataFrame(rows, columns=["image", "shape"])


class ImagePreprocessor:
    """Scales pixels to a mean of 0."""

    columns = ["image"]  # noqa: RUF012

    def __init__(self) -> None:
        self.mean, self.deviation = 0.0, 1.0

    def _stack(self, frame: pd.DataFrame) -> np.ndarray[Any, Any]:
        return np.stack(list(frame["image"])).astype(np.float32)[:, None] / 255

    def fit(self, train: pd.DataFrame) -> Self:
        pixels = self._stack(train)
        self.mean, self.deviation = float(pixels.mean()), float(pixels.std())
        return self

    def transform(self, frame: pd.DataFrame) -> Arrays:
        return {"image": (self._stack(frame) - self.mean) / self.deviation}

    def state_dict(self) -> dict[str, Any]:
        return {"mean": self.mean, "deviation": self.deviation}

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> Self:
        made = cls()
        made.mean, made.deviation = state["mean"], state["deviation"]
        return made


class ImageNetwork(nn.Module):
    def __init__(self, *, normalised: bool = True) -> None:
        super().__init__()
        normalisation = nn.BatchNorm2d(8) if normalised else nn.Identity()
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 3), normalisation, nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten()
        )
        self.head = nn.Linear(72, 3)

    def forward(self, image: Tensor) -> Tensor:
        outputs: Tensor = self.head(self.body(image))
        return outputs


class Anywhere(nn.Module):
    """Knows a shape wherever it is."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.Conv2d(16, 16, 5, padding=2), nn.ReLU()
        )
        self.head = nn.Linear(16, 3)

    def forward(self, image: Tensor) -> Tensor:
        outputs: Tensor = self.head(self.body(image).amax((2, 3)))
        return outputs


class Shapes(MulticlassTask):
    """Three classes of images, shifted by a pixel at random."""

    label = "shape"
    classes = ("left", "right", "bar")

    def preprocessor(self) -> Preprocessor:
        return ImagePreprocessor()

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return ImageNetwork()

    def augment(
        self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> tuple[dict[str, Tensor], Tensor]:
        moved = torch.rand(len(target), generator=generator) < 0.5
        image = arrays["image"]
        image[moved] = image[moved].roll(1, dims=3)
        return {"image": image}, target


HEALTHY: dict[str, tuple[type[Task], pd.DataFrame]] = {
    "binary": (Houses, table()),
    "tiny": (Houses, table(60)),
    "regression": (Prices, table()),
    "multilabel": (Both, table()),
    "jittered": (Jittered, table()),
    "images": (Shapes, images()),
    "language model": (Letters, texts()),
    "texts": (Early, texts()),
}
