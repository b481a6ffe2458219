"""Small tasks whose network a test brings, and the finding of one check on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn

from training_core.checks.contract import Check, Finding
from training_core.checks.runner import make
from training_core.checks.subject import Subject
from training_core.settings import CheckSettings, TrainingSettings
from training_core.tabular import TabularPreprocessor
from training_core.task import (
    BinaryTask,
    MulticlassTask,
    Preprocessor,
    RegressionTask,
    SequenceTask,
    Task,
)

WIDTH, LENGTH, VOCABULARY = 16, 12, 7
Build = Callable[[], nn.Module]


def find(
    check: type[Check],
    task: Task,
    frame: pd.DataFrame,
    *,
    steps: int = 16,
    planned_rows: int = 0,
    **training: Any,
) -> Finding:
    """Make one check as the runner does."""
    settings = {"batch_size": 32, "epochs": 20, "optimiser": {"lr": 3e-3}, **training}
    subject = Subject(
        task,
        frame,
        training=TrainingSettings.model_validate(settings),
        settings=CheckSettings(input_steps=steps),
        planned_rows=planned_rows,
    )
    return make(check(), subject)


# ---- a table -------------------------------------------------------------------------------------


def table(count: int = 300) -> pd.DataFrame:
    """A shop, three numbers, and a yes or no that follows from them."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(count, 3)), columns=["a", "b", "c"])
    frame["shop"] = random.choice(["north", "south", "west"], count)
    score = frame["a"] - frame["b"] + (frame["shop"] == "north")
    return frame.assign(bought=(score + random.normal(0, 0.3, count) > 0).astype(float))


class Table(nn.Module):
    """Embeds the shop, and joins it with the numbers; the body is what a test changes."""

    def __init__(self) -> None:
        super().__init__()
        self.shop = nn.Embedding(4, 3)
        self.body = self.make_body()
        self.head = nn.Linear(WIDTH, 1)

    def make_body(self) -> nn.Module:
        return nn.Sequential(nn.Linear(6, WIDTH), nn.ReLU())

    def joined(self, categories: Tensor, numbers: Tensor) -> Tensor:
        return torch.cat([self.shop(categories[:, 0]), numbers], 1)

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        return self.head(self.body(self.joined(categories, numbers))).squeeze(1)


class Normalised(Table):
    """With BatchNorm and dropout."""

    momentum: float | None = 0.1

    def make_body(self) -> nn.Module:
        norm = nn.BatchNorm1d(WIDTH, momentum=self.momentum)
        return nn.Sequential(nn.Linear(6, WIDTH), norm, nn.ReLU(), nn.Dropout(0.2))


class Sales(BinaryTask):
    """Yes or no, by the network given."""

    label = "bought"

    def __init__(self, build: Build) -> None:
        super().__init__()
        self.build = build

    def preprocessor(self) -> TabularPreprocessor:
        return TabularPreprocessor(categories=["shop"], numbers=["a", "b", "c"])

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return self.build()


class Amounts(RegressionTask):
    """A number of an odd scale, by the network given."""

    label = "bought"

    def __init__(self, build: Build) -> None:
        super().__init__()
        self.build = build

    preprocessor = Sales.preprocessor
    build_model = Sales.build_model

    def target(self, frame: pd.DataFrame) -> npt.NDArray[np.float32]:
        return (super().target(frame) * 2_000 + 5_000).astype(np.float32)

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return (outputs - (target - 5_000) / 2_000).square()


# ---- sequences -----------------------------------------------------------------------------------


def sentences(count: int = 120) -> pd.DataFrame:
    """Walks on a ring of tokens: mostly one on, sometimes to anywhere."""
    random = np.random.default_rng(0)
    rows = []
    for _ in range(count):
        tokens = [int(random.integers(VOCABULARY))]
        while len(tokens) < LENGTH + 2:
            jump = random.random() < 0.3
            tokens.append(int(random.integers(VOCABULARY)) if jump else (tokens[-1] + 1) % 7)
        rows.append(tokens)
    return pd.DataFrame({"tokens": rows})


class TokenLists:
    """The first tokens of each list, as they are."""

    columns = ["tokens"]  # noqa: RUF012 (what a user may well write)

    def fit(self, train: pd.DataFrame) -> TokenLists:
        return self

    def transform(self, frame: pd.DataFrame) -> dict[str, npt.NDArray[Any]]:
        tokens = np.array(frame["tokens"].to_list(), dtype=np.int64)
        return {"tokens": tokens[:, :LENGTH]}

    def state_dict(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> TokenLists:
        return cls()


class Language(nn.Module):
    """One block of attention."""

    causal, heads = True, 2

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, self.heads, batch_first=True)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        hidden = self.tokens(tokens) + self.places(torch.arange(length))
        mask = torch.ones(length, length).triu(1).bool() if self.causal else None
        found, _ = self.attention(hidden, hidden, hidden, attn_mask=mask, need_weights=False)
        return self.head(self.norm(hidden + found))


class Sentences(SequenceTask):
    """The token that comes `lead` places later."""

    label = "tokens"

    def __init__(self, build: Build, *, lead: int = 1) -> None:
        super().__init__()
        self.build, self.lead = build, lead

    def preprocessor(self) -> Any:
        return TokenLists()

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return self.build()

    def target(self, frame: pd.DataFrame) -> npt.NDArray[np.int64]:
        tokens = np.array(frame["tokens"].to_list(), dtype=np.int64)
        return tokens[:, self.lead : self.lead + LENGTH]


# ---- images --------------------------------------------------------------------------------------


class Pictures:
    """Bytes as floats, [N, 2, 6, 6]."""

    columns = ["picture"]  # noqa: RUF012

    def fit(self, train: pd.DataFrame) -> Pictures:
        return self

    def transform(self, frame: pd.DataFrame) -> dict[str, npt.NDArray[Any]]:
        return {"image": np.stack(frame["picture"].to_list()).astype(np.float32) / 128 - 1}

    def state_dict(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> Pictures:
        return cls()


def pictures(count: int = 160) -> pd.DataFrame:
    """Noise that is brighter in one half, in the first of two channels."""
    random = np.random.default_rng(0)
    images = random.integers(0, 128, (count, 2, 6, 6))
    side = random.integers(0, 2, count)
    images[side == 0, 0, :, :3] += 90
    images[side == 1, 0, :, 3:] += 90
    return pd.DataFrame({"picture": list(images.astype(np.uint8)), "side": side})


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(2, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten()
        )
        self.head = nn.Linear(8 * 36, 2)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.layers(image))


class Sides(MulticlassTask):
    label = "side"
    classes = (0, 1)

    def __init__(self, build: Build) -> None:
        super().__init__()
        self.build = build

    def preprocessor(self) -> Any:
        return Pictures()

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return self.build()


HEALTHY: dict[str, tuple[Callable[[], Task], Callable[[], pd.DataFrame]]] = {
    "binary": (lambda: Sales(Table), table),
    "BatchNorm and dropout": (lambda: Sales(Normalised), table),
    "regression of an odd scale": (lambda: Amounts(Normalised), table),
    "few rows": (lambda: Sales(Normalised), lambda: table(60)),
    "language": (lambda: Sentences(Language), sentences),
    "images": (lambda: Sides(Convolutions), pictures),
}
