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
| target            | first dimension N; see each kind of task                              |
| loss, metrics     | float [N], one value a row; means are taken by the trainer            |
| prediction        | first dimension N; see each kind of task                              |

| kind       | outputs          | target                    | prediction                       |
|------------|------------------|---------------------------|----------------------------------|
| binary     | [N], the logit   | float32 [N], 0 or 1       | [N], probability of 1            |
| multiclass | [N, C], logits   | int64 [N], the class      | [N, C], probabilities            |
| multilabel | [N, K], logits   | float32 [N, K], 0 or 1    | [N, K], probability of each 1    |
| regression | [N], the value   | float32 [N]               | [N], the value                   |
| sequence   | [N, T, V], logits| int64 [N, T], the token   | [N, T, V], probabilities         |

A row without a label has NaN (or an infinity) in its target, a class of -1, or padding alone. In a
sequence, -100 is padding: a position that counts for nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
import torch.nn.functional as F  # noqa: N812 (the field's name for it)
from pydantic import BaseModel, ConfigDict
from torch import Tensor, nn

if TYPE_CHECKING:
    from training_core.checks.contract import Check

Kind = Literal["binary", "multiclass", "multilabel", "regression", "sequence"]
PADDING = -100  # the target of a position that counts for nothing, as in torch's cross_entropy
Arrays = dict[str, npt.NDArray[Any]]


class Preprocessor(Protocol):
    """Turns raw rows into arrays; fitted on the train split only; its state is plain data.

    It has a module of its own, not `task.py`: a copy of that one file travels inside the packaged
    model. It may import the standard library, numpy, pandas and torch; nothing of the project.
    A list's cell arrives as a numpy array (nested: of arrays) that is not to be written to.
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

    kind: ClassVar[Kind]
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
    def target(self, frame: pd.DataFrame) -> npt.NDArray[Any]:
        """Return the target of each row, first dimension N; NaN, or a class of -1, without label.

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

    def units(self, target: Tensor) -> Tensor | None:
        """Return how many units, such as tokens, each example's summed loss covers, float32 [N].

        None, as usual: each example is one unit. Means are taken over units.
        """
        return None

    def augment(
        self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Change the examples of a training step at random; evaluation never does.

        Args:
            arrays: Copies, which may be written to; N examples.
            target: The same.
            generator: The only source of chance, so that a run can be repeated.

        Returns:
            As many examples of the same shapes.
        """
        return arrays, target

    def larger(self, factor: int) -> Task | None:
        """Return a task whose network is about `factor` times as wide, if there can be one.

        Asked where one batch cannot be learned by heart: is the network too small, or broken?
        """
        return None

    def rule(self, frame: pd.DataFrame) -> npt.NDArray[Any] | None:
        """Return what a plain rule predicts for each row, as in the table above; None: no rule.

        A baseline that knows what people know. The frame lacks the label; sequences have no rule.
        """
        return None

    def checks(self) -> Sequence[Check]:
        """Return sanity checks of this project's own, made after all others."""
        return ()


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
            "log_loss": BinaryTask.loss(self, outputs.float(), target),
            "brier": (probability - target).square(),
            "error": ((probability >= 0.5) != (target >= 0.5)).float(),
        }

    def predict(self, outputs: Tensor) -> Tensor:
        return torch.sigmoid(outputs.float())


class MulticlassTask(Task):
    """One of several classes.

    Class attributes:
        classes: The label's values, in the order of the outputs; any other has no label.
    """

    kind = "multiclass"
    classes: ClassVar[Sequence[Any]]

    def target(self, frame: pd.DataFrame) -> npt.NDArray[np.int64]:
        index = pd.Index(self.classes).get_indexer(pd.Index(frame[self.label]))
        return np.asarray(index, dtype=np.int64)

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(outputs, target, reduction="none")

    def metrics(self, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        return {
            "log_loss": F.cross_entropy(outputs.float(), target, reduction="none"),
            "error": (outputs.argmax(1) != target).float(),
        }

    def predict(self, outputs: Tensor) -> Tensor:
        return outputs.float().softmax(1)


class MultilabelTask(Task):
    """Several yes or no at once; an example's loss is the mean over its labels.

    Class attributes:
        labels: The raw columns, in the order of the outputs; `label` is the first of them.
    """

    kind = "multilabel"
    labels: ClassVar[Sequence[str]]

    def target(self, frame: pd.DataFrame) -> npt.NDArray[np.float32]:
        columns = [pd.to_numeric(frame[label], errors="coerce") for label in self.labels]
        return np.stack([np.asarray(c, dtype=np.float32) for c in columns], axis=1)

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(outputs, target, reduction="none").mean(1)

    def metrics(self, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        wrong = (outputs >= 0) != (target >= 0.5)
        return {
            "log_loss": MultilabelTask.loss(self, outputs.float(), target),
            "error": wrong.float().mean(1),
        }

    def predict(self, outputs: Tensor) -> Tensor:
        return torch.sigmoid(outputs.float())


class RegressionTask(Task):
    """A number."""

    kind = "regression"

    def target(self, frame: pd.DataFrame) -> npt.NDArray[np.float32]:
        return np.asarray(pd.to_numeric(frame[self.label], errors="coerce"), dtype=np.float32)

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return (outputs - target).square()

    def metrics(self, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        difference = self.predict(outputs) - target
        return {"squared_error": difference.square(), "absolute_error": difference.abs()}

    def predict(self, outputs: Tensor) -> Tensor:
        return outputs.float()


class SequenceTask(Task):
    """The next token, or another one for each position; losses are summed over tokens.

    `label` is the raw column that holds the sequence; of a language model it is an input as well.
    """

    kind = "sequence"

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        losses = F.cross_entropy(
            outputs.flatten(0, 1), target.flatten(), reduction="none", ignore_index=PADDING
        )
        return losses.view(target.shape).sum(1)

    def units(self, target: Tensor) -> Tensor:
        return (target != PADDING).sum(1).float()

    def metrics(self, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        wrong = (outputs.argmax(2) != target) & (target != PADDING)
        return {
            "log_loss": SequenceTask.loss(self, outputs.float(), target),
            "error": wrong.float().sum(1),
        }

    def predict(self, outputs: Tensor) -> Tensor:
        return outputs.float().softmax(2)
