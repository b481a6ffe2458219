"""The task contract: what an ML engineer brings, and all that the pipeline knows of it.

A task says how raw rows become tensors, what the network is, and what each example costs.
Everything is **per example**: the loss and every metric return one value a row, so that means over
microbatches and ranks are exact, evaluation counts each row once, and two models can be compared
pair by pair.

    class MyTask(BinaryTask):
        label = "clicked"

        def preprocessor(self) -> Preprocessor:
            return TabularPreprocessor(categories=["country"], numbers=["age"])

        def build_model(self, preprocessor: Preprocessor) -> nn.Module:
            ...

| what              | shape and dtype                                                       |
|-------------------|-----------------------------------------------------------------------|
| raw rows          | `pandas.DataFrame`, N rows                                            |
| `transform(rows)` | arrays by name, first dimension N: float32 numbers, int64 categories  |
| model(**arrays)   | outputs, float [N] (binary: the logit)                                |
| target            | float32 [N]; NaN where a row has no label                             |
| loss, metrics     | float [N], one value a row; means are taken by the trainer            |
| prediction        | float [N] (binary: the probability of the positive class)             |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
import torch.nn.functional as F  # noqa: N812 (the field's name for it)
from pydantic import BaseModel, ConfigDict
from torch import Tensor, nn

Arrays = dict[str, npt.NDArray[Any]]


class Preprocessor(Protocol):
    """Turns raw rows into arrays; fitted on the train split only; its state is plain data.

    The module that defines it must import nothing of the project: a copy of that file travels
    inside the packaged model.
    """

    @property
    def columns(self) -> list[str]:
        """Raw columns that `transform` reads."""

    def fit(self, train: pd.DataFrame) -> Self:
        """Learn from the train split; return itself."""

    def transform(self, frame: pd.DataFrame) -> Arrays:
        """Turn N raw rows into arrays whose first dimension is N."""

    def state_dict(self) -> dict[str, Any]:
        """Everything learned, as JSON-able data."""

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> Self:
        """Rebuild a fitted preprocessor."""


class NoOptions(BaseModel):
    """A task without options."""

    model_config = ConfigDict(extra="forbid")


class Task(ABC):
    """What is learned, from what, at what cost.

    Class attributes:
        kind: What the outputs mean; decides metrics and baselines.
        label: The raw column that holds the target. It must never be a feature.
        Options: A pydantic model of the options that `evertrain.yaml` may set under
            `task.options`; an instance of it arrives as `self.options`.
    """

    kind: ClassVar[Literal["binary"]]
    label: ClassVar[str]
    Options: ClassVar[type[BaseModel]] = NoOptions

    def __init__(self, options: BaseModel | None = None) -> None:
        self.options: Any = self.Options() if options is None else options

    @abstractmethod
    def preprocessor(self) -> Preprocessor:
        """Return a preprocessor that is not fitted yet."""

    @abstractmethod
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        """Return the network for a fitted preprocessor; it is called as `model(**arrays)`."""

    @abstractmethod
    def target(self, frame: pd.DataFrame) -> npt.NDArray[np.float32]:
        """Return the target of each row, float32 [N]; NaN where a row has no label.

        It is a function of the label column alone, row by row: to divide millions of rows it is
        asked once for each different label, in a frame that has no other column.
        """

    @abstractmethod
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        """Return the loss of each example, float [N]."""

    @abstractmethod
    def metrics(self, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Return per-example metrics by name, each float [N]."""

    @abstractmethod
    def predict(self, outputs: Tensor) -> Tensor:
        """Turn outputs into predictions, float [N]."""


class BinaryTask(Task):
    """Yes or no: the model's output is a logit, the prediction a probability."""

    kind = "binary"

    def target(self, frame: pd.DataFrame) -> npt.NDArray[np.float32]:
        return np.asarray(pd.to_numeric(frame[self.label], errors="coerce"), dtype=np.float32)

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(outputs, target, reduction="none")

    def metrics(self, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        probability = torch.sigmoid(outputs.float())
        return {
            "log_loss": self.loss(outputs.float(), target),
            "brier": (probability - target).square(),
            "error": ((probability >= 0.5) != (target >= 0.5)).float(),
        }

    def predict(self, outputs: Tensor) -> Tensor:
        return torch.sigmoid(outputs.float())
