"""Small healthy tasks of several kinds, and a way to plant a mistake into the training's code."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn

from training_core.checks.contract import Check, Finding
from training_core.checks.runner import COULD_NOT, make
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
    SequenceTask,
    Task,
)


def table(count: int, seed: int = 0) -> pd.DataFrame:
    """Two numbers and a category, three labels, and a small image of the sum's sign."""
    random = np.random.default_rng(seed)
    numbers = random.normal(size=(count, 2))
    kind = random.choice(["a", "b"], count)
    score = numbers.sum(1) + (kind == "a")
    bright = (score > 0.5)[:, None, None] + random.normal(0, 0.2, (count, 6, 6))
    words = [list("abab" if value > 0.5 else "cdcdcd") for value in score]
    return pd.DataFrame(
        {
            "x": numbers[:, 0], "y": numbers[:, 1], "kind": kind,
            "yes": (score > 0.5).astype(float), "other": (numbers[:, 0] > 0).astype(float),
            "price": 5_000 + 2_000 * score, "image": list(bright), "text": words,
        }
    )  # fmt: skip


class Network(nn.Module):
    """A small table's network; outputs [N, outputs], or [N] for one."""

    def __init__(self, preprocessor: Preprocessor, *, outputs: int = 1) -> None:
        super().__init__()
        assert isinstance(preprocessor, TabularPreprocessor)
        self.embedding = nn.Embedding(preprocessor.cardinalities[0], 2)
        width = 2 + len(preprocessor.number_columns)
        self.body = nn.Sequential(
            nn.Linear(width, 16), nn.LayerNorm(16), nn.ReLU(), nn.Dropout(0.2)
        )
        self.head = nn.Linear(16, outputs)

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        hidden = self.body(torch.cat([self.embedding(categories[:, 0]), numbers], 1))
        outputs: Tensor = self.head(hidden)
        return outputs.squeeze(1) if outputs.shape[1] == 1 else outputs


class _Table(Task):
    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(categories=["kind"], numbers=["x", "y"])

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Network(preprocessor)


class Yes(_Table, BinaryTask):
    """Yes or no."""

    label = "yes"


class Both(_Table, MultilabelTask):
    """Two labels at once."""

    label, labels = "yes", ("yes", "other")

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Network(preprocessor, outputs=2)


class Price(_Table, RegressionTask):
    """A number of an odd scale."""

    label = "price"

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return (outputs - (target - 5_000) / 2_000).square()

    def predict(self, outputs: Tensor) -> Tensor:
        return outputs.float() * 2_000 + 5_000


class Pictures(MulticlassTask):
    """Images, a network with BatchNorm, and an augmentation."""

    label, classes = "yes", (0.0, 1.0)

    def preprocessor(self) -> Preprocessor:
        return Stacked()

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Convolutions()

    def augment(
        self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> tuple[dict[str, Tensor], Tensor]:
        noise = torch.randn(arrays["image"].shape, generator=generator)
        return {"image": arrays["image"] + noise}, target


class Convolutions(nn.Module):
    """A bias that BatchNorm makes useless: its gradient is rounding alone."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)
        self.last = nn.Linear(4, 2)

    def forward(self, image: Tensor) -> Tensor:
        outputs: Tensor = self.last(self.norm(self.first(image)).relu().mean((2, 3)))
        return outputs


class Stacked:
    """Images of a column as they are."""

    columns: ClassVar[list[str]] = ["image"]

    def fit(self, train: pd.DataFrame) -> Self:
        return self

    def transform(self, frame: pd.DataFrame) -> Arrays:
        return {"image": np.stack(frame["image"].to_list())[:, None].astype(np.float32)}

    def state_dict(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> Self:
        return cls()


class Letters(SequenceTask):
    """The next letter; embedding and head are tied; sequences of two lengths."""

    label = "text"

    def preprocessor(self) -> Preprocessor:
        return Before()

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Tied()

    def target(self, frame: pd.DataFrame) -> npt.NDArray[np.int64]:
        return indices(frame["text"], missing=-100)


class Tied(nn.Module):
    """Running sums of what came before, put out through the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.letters, self.head = nn.Embedding(6, 8), nn.Linear(8, 6, bias=False)
        self.inner = nn.Linear(8, 8)
        self.head.weight = self.letters.weight

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.letters(tokens).cumsum(1)
        outputs: Tensor = self.head(hidden + self.inner(hidden).tanh())
        return outputs


class Before(Stacked):
    """Tokens shifted by one: what a position may see."""

    columns: ClassVar[list[str]] = ["text"]

    def transform(self, frame: pd.DataFrame) -> Arrays:
        tokens = indices(frame["text"], missing=5)
        return {"tokens": np.insert(tokens, 0, 4, axis=1)[:, :-1]}


def indices(texts: Sequence[list[str]], *, missing: int) -> npt.NDArray[np.int64]:
    """Letters as numbers, int64 [N, 6]."""
    rows = [["abcd".index(letter) for letter in text] for text in texts]
    return np.array([[*row, *[missing] * (6 - len(row))] for row in rows], dtype=np.int64)


TASKS: dict[str, type[Task]] = {
    "binary": Yes, "multilabel": Both, "regression": Price, "multiclass": Pictures,
    "sequence": Letters,
}  # fmt: skip


def settings(**changes: Any) -> TrainingSettings:
    """Of a training that a subject plans."""
    base = {"epochs": 8, "batch_size": 16, "device": "cpu", "optimiser": {"lr": 0.01}}
    return TrainingSettings.model_validate({**base, **changes})


def subject_of(task: Task, *, count: int = 120, **changes: Any) -> Subject:
    """Return a subject of a table's rows."""
    checks = CheckSettings(input_steps=30)
    return Subject(task, table(count), training=settings(**changes), settings=checks)


def found(check: Check, task: Task, *, count: int = 120, **changes: Any) -> Finding:
    """Make one check of a task as the runner makes it."""
    return make(check, subject_of(task, count=count, **changes))


def failure(
    check: Check,
    task: Task,
    planted: AbstractContextManager[Any],
    *,
    count: int = 120,
    **changes: Any,
) -> str:
    """Return in which words a check fails with a bug in place; it has to, and not by breaking."""
    with planted:
        finding = found(check, task, count=count, **changes)
    assert finding.verdict == "fail", finding.message
    assert COULD_NOT not in finding.message
    assert finding.advice
    return finding.message
