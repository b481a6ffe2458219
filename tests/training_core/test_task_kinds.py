"""Each kind of task: shapes, losses as by hand, rows without a label, and training by the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from training_samples import CPU, settings

from training_core.evaluation import evaluate
from training_core.examples import Examples
from training_core.loop import Trainer
from training_core.parallel.single import SingleProcess
from training_core.tabular import TabularPreprocessor
from training_core.task import (
    PADDING,
    MulticlassTask,
    MultilabelTask,
    Preprocessor,
    RegressionTask,
    SequenceTask,
    Task,
)


class _Affine(nn.Module):
    """Outputs of any shape, from two numbers."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.shape = shape
        self.layer = nn.Linear(2, int(np.prod(shape)))

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        outputs: Tensor = self.layer(numbers)
        return outputs.view(-1, *self.shape) if self.shape else outputs.squeeze(1)


class _Table(Task):
    shape: tuple[int, ...] = ()

    def preprocessor(self) -> TabularPreprocessor:
        return TabularPreprocessor(categories=[], numbers=["a", "b"])

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return _Affine(*self.shape)


class Colour(_Table, MulticlassTask):
    label, classes, shape = "colour", ("red", "green", "blue"), (3,)


class Tags(_Table, MultilabelTask):
    label, labels, shape = "old", ("old", "cheap"), (2,)


class Price(_Table, RegressionTask):
    label = "price"


class Words(_Table, SequenceTask):
    label, shape = "words", (3, 5)

    def target(self, frame: pd.DataFrame) -> Any:
        lengthened = [[*words, *[PADDING] * (3 - len(words))] for words in frame[self.label]]
        return np.array(lengthened, dtype=np.int64)


def frame(count: int = 40) -> pd.DataFrame:
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, count))
    return pd.DataFrame(
        {
            "a": a,
            "b": b,
            "colour": np.where(a > 0.5, "red", np.where(b > 0, "green", "blue")),
            "old": (a > 0).astype(float),
            "cheap": (b > 0).astype(float),
            "price": 3 * a - b,
            "words": [[1, 2, 4][: 1 + i % 3] for i in range(count)],
        }
    )


KINDS: list[Callable[[], Task]] = [Colour, Tags, Price, Words]


@pytest.mark.parametrize("kind", KINDS)
def test_the_loop_trains_every_kind_and_evaluation_is_the_plain_mean(
    kind: Callable[[], Task],
) -> None:
    task, rows = kind(), frame()
    preprocessor = task.preprocessor().fit(rows)
    examples = Examples.from_frame(task, preprocessor, rows)
    torch.manual_seed(0)
    trainer = Trainer(
        task=task,
        model=task.build_model(preprocessor),
        train=examples,
        validation=examples,
        settings=settings(epochs=20, optimiser={"lr": 0.03}),
        strategy=SingleProcess(CPU),
    )
    before = evaluate(task, trainer.module, examples)
    trainer.fit()
    after = evaluate(task, trainer.module, examples)
    assert after["loss"] < 0.8 * before["loss"]
    with torch.no_grad():
        outputs = trainer.module(**examples.arrays)
    units = len(rows) if examples.units is None else float(examples.units.sum())
    assert after["loss"] == pytest.approx(
        float(task.loss(outputs, examples.target).double().sum()) / units, rel=1e-6
    )
    assert len(task.predict(outputs)) == len(rows)


def test_losses_are_those_of_the_books() -> None:
    logits = torch.tensor([[2.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
    chances = logits.exp() / logits.exp().sum(1, keepdim=True)
    target = torch.tensor([0, 2])
    expected = -chances[torch.arange(2), target].log()
    torch.testing.assert_close(Colour().loss(logits, target), expected)
    assert Colour().metrics(logits, target)["error"].tolist() == [0.0, 1.0]

    both = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    sure = torch.sigmoid(logits[:, :2])
    by_hand = -(both * sure.log() + (1 - both) * (1 - sure).log()).mean(1)
    torch.testing.assert_close(Tags().loss(logits[:, :2], both), by_hand)

    assert Price().loss(torch.tensor([3.0]), torch.tensor([1.0])).tolist() == [4.0]


def test_padding_counts_for_nothing_and_means_are_over_tokens() -> None:
    task = Words()
    target = torch.tensor([[1, PADDING, PADDING], [1, 2, PADDING]])
    outputs = torch.randn(2, 3, 5, requires_grad=True)
    losses = task.loss(outputs, target)
    by_token = -outputs.log_softmax(2)
    expected = torch.stack([by_token[0, 0, 1], by_token[1, 0, 1] + by_token[1, 1, 2]])
    torch.testing.assert_close(losses, expected)
    assert task.units(target).tolist() == [1.0, 2.0]
    losses.sum().backward()
    assert outputs.grad is not None
    assert float(outputs.grad[0, 1:].abs().max()) == 0.0
    assert task.metrics(outputs, target)["error"].shape == (2,)


@pytest.mark.parametrize(
    ("kind", "column", "missing"),
    [(Colour, "colour", "purple"), (Tags, "cheap", None), (Price, "price", None)],
)
def test_rows_without_a_label_are_refused_by_their_number(
    kind: Callable[[], Task], column: str, missing: object
) -> None:
    task, rows = kind(), frame(6).astype({column: object})
    rows.loc[[1, 4], column] = missing
    with pytest.raises(ValueError, match="2 rows have no label"):
        Examples.from_frame(task, task.preprocessor().fit(rows), rows)
