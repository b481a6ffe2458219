"""Outputs that are stuck at a bound are found, and bounds that the targets keep are not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from training_core.checks.graph.outputs_move_freely import OutputsMoveFreely
from training_core.checks.runner import make
from training_core.checks.subject import Subject
from training_core.settings import CheckSettings, TrainingSettings
from training_core.tabular import TabularPreprocessor
from training_core.task import BinaryTask, Preprocessor, RegressionTask


class _Network(nn.Module):
    def __init__(self, last: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
        self.last = last

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        outputs: Tensor = self.last(self.layers(numbers)).squeeze(1)
        return outputs


class _Table:
    last: type[nn.Module] = nn.Identity

    def preprocessor(self) -> TabularPreprocessor:
        return TabularPreprocessor(categories=[], numbers=["a", "b"])

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return _Network(self.last())


class Price(_Table, RegressionTask):
    label = "price"


class Late(_Table, BinaryTask):
    label = "late"


def finding(task: type[Price] | type[Late], last: type[nn.Module], *, lowest: float = -9.0) -> str:
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 300))
    price = np.maximum(a + b, lowest)
    rows = pd.DataFrame({"a": a, "b": b, "price": price, "late": (a > 0).astype(float)})
    kind = type("Changed", (task,), {"last": last})
    subject = Subject(
        kind(),
        rows,
        training=TrainingSettings(batch_size=32, optimiser={"lr": 0.01}),
        settings=CheckSettings(input_steps=60),
    )
    torch.manual_seed(0)
    said = make(OutputsMoveFreely(), subject)
    return f"{said.verdict}: {said.message}"


@pytest.mark.parametrize("task", [Price, Late])
def test_a_relu_that_cuts_off_what_the_targets_need_is_found(
    task: type[Price] | type[Late],
) -> None:
    said = finding(task, nn.ReLU)
    assert said.startswith("fail: ")
    assert "stuck at 0, the smallest" in said


def test_a_clamp_from_above_is_found_at_that_end() -> None:
    class Capped(nn.Module):
        def forward(self, outputs: Tensor) -> Tensor:
            return outputs.clamp(max=0.25)

    assert "stuck at 0.25, the largest" in finding(Price, Capped)


@pytest.mark.parametrize(
    ("task", "last", "lowest"),
    [(Price, nn.Identity, -9.0), (Late, nn.Identity, -9.0), (Price, nn.ReLU, 0.0)],
)
def test_outputs_without_a_bound_and_a_bound_that_the_targets_have_pass(
    task: type[Price] | type[Late], last: type[nn.Module], lowest: float
) -> None:
    assert finding(task, last, lowest=lowest).startswith("pass: ")
