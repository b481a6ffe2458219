"""Small real things that the tests of training_core share: rows, a task, a trainer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from infra.folder import FolderStore
from training_core.checkpoints.catalogue import Checkpoints
from training_core.determinism import seed_everything
from training_core.examples import Examples
from training_core.loop import Trainer
from training_core.parallel.single import SingleProcess
from training_core.parallel.strategy import Strategy
from training_core.settings import TrainingSettings
from training_core.tabular import TabularPreprocessor
from training_core.task import BinaryTask, Preprocessor

CPU = torch.device("cpu")


def rows(count: int, *, seed: int = 0) -> pd.DataFrame:
    """Sales whose label follows from height and shop, with a little noise."""
    random = np.random.default_rng(seed)
    shop = random.choice(["north", "south", "west"], count)
    height, width = random.normal(170, 10, count), random.normal(3, 2, count)
    score = (height - 170) / 3 + 3 * (shop == "north") - 1 + random.normal(0, 0.3, count)
    return pd.DataFrame(
        {"shop": shop, "height": height, "width": width, "bought": (score > 0).astype("float64")}
    )


class Network(nn.Module):
    """A network as a user would write it."""

    def __init__(self, preprocessor: Preprocessor, *, hidden: int = 16, dropout: float = 0.1):
        super().__init__()
        assert isinstance(preprocessor, TabularPreprocessor)
        self.embedding = nn.Embedding(preprocessor.cardinalities[0], 4)
        self.body = nn.Sequential(
            nn.Linear(4 + len(preprocessor.number_columns), hidden),
            nn.LayerNorm(hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
        )
        self.head = nn.Linear(hidden, 1)

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        joined = torch.cat([self.embedding(categories[:, 0]), numbers], 1)
        return self.head(self.body(joined)).squeeze(1)


class Sales(BinaryTask):
    """The healthy task."""

    label = "bought"
    dropout = 0.1

    def preprocessor(self) -> TabularPreprocessor:
        return TabularPreprocessor(categories=["shop"], numbers=["height", "width"])

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Network(preprocessor, dropout=self.dropout)


class Certain(Sales):
    """Without dropout, so that sums can be compared exactly."""

    dropout = 0.0


class Noisy(Certain):
    """Adds noise to the numbers, in place: it may, they are copies."""

    def augment(
        self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> tuple[dict[str, Tensor], Tensor]:
        numbers = arrays["numbers"]
        numbers += 0.1 * torch.randn(numbers.shape, generator=generator)
        return arrays, target


class Noting(nn.Module):
    """Passes its inputs on and notes which rows it was trained on."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.trained: list[int] = []
        self.evaluated: list[int] = []

    def forward(self, row: Tensor, **arrays: Tensor) -> Tensor:
        (self.trained if self.training else self.evaluated).extend(row.tolist())
        outputs: Tensor = self.inner(**arrays)
        return outputs


def examples_of(
    task: BinaryTask, count: int, *, seed: int = 0, noting: bool = False
) -> tuple[TabularPreprocessor, Examples]:
    frame = rows(count, seed=seed)
    preprocessor = task.preprocessor().fit(frame)
    assert isinstance(preprocessor, TabularPreprocessor)
    examples = Examples.from_frame(task, preprocessor, frame)
    if noting:
        examples = Examples({**examples.arrays, "row": torch.arange(count)}, examples.target)
    return preprocessor, examples


def settings(**changes: Any) -> TrainingSettings:
    """Of a short training."""
    base = {"epochs": 2, "batch_size": 8, "device": "cpu", "log_every": 5, "evaluate_every": 4}
    return TrainingSettings.model_validate({**base, **changes})


def trainer(
    folder: Path | None = None,
    *,
    task: BinaryTask | None = None,
    train: Examples | None = None,
    validation: Examples | None = None,
    model: nn.Module | None = None,
    count: int = 43,
    noting: bool = False,
    strategy: Strategy | None = None,
    place: Checkpoints | None = None,
    hooks: dict[str, Any] | None = None,
    **changes: Any,
) -> Trainer:
    """A trainer on `count` rows whose checkpoints, if any, lie in a folder."""
    task = task or Certain()
    preprocessor, own = examples_of(task, count, noting=noting)
    if model is None:
        seed_everything(7)
        model = task.build_model(preprocessor)
        model = Noting(model) if noting else model
    if folder is not None:
        place = Checkpoints(FolderStore(folder), "run")
    return Trainer(
        task=task,
        model=model,
        train=own if train is None else train,
        validation=examples_of(task, 21, seed=1, noting=noting)[1]
        if validation is None
        else validation,
        settings=settings(**changes),
        strategy=strategy or SingleProcess(CPU),
        checkpoints=place,
        **(hooks or {}),
    )


def weights(module: nn.Module) -> dict[str, Tensor]:
    return {name.removeprefix("module."): value for name, value in module.state_dict().items()}


def largest_difference(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).abs().max()) for name in one)


def noting(run: Trainer) -> Noting:
    """The model of a run that was built to note what it sees."""
    assert isinstance(run.model, Noting)
    return run.model
