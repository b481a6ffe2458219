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


class _Between(nn.Module):
    """A sigmoid from -9 to 9."""

    def forward(self, outputs: Tensor) -> Tensor:
        return 18 * outputs.sigmoid() - 9


class _Squeezed(nn.Module):
    """The logarithm of what lies beyond 1: slow, and without a bound."""

    def forward(self, outputs: Tensor) -> Tensor:
        return outputs.sign() * outputs.abs().log1p()


def test_a_tanh_before_targets_beyond_one_is_found() -> None:
    said = finding(Price, nn.Tanh)
    assert said.startswith("fail: whatever the weights, outputs stay between -1 and 1")


def test_a_bound_that_is_reached_from_one_side_is_found() -> None:
    said = finding(Price, nn.Softplus)
    assert said.startswith("fail: ")
    assert "between 0 and inf" in said or "stuck at 0" in said


@pytest.mark.parametrize(
    ("last", "lowest"), [(_Between, -9.0), (_Squeezed, -9.0), (nn.Softplus, 0.0)]
)
def test_targets_within_the_bounds_and_slow_growth_pass(
    last: type[nn.Module], lowest: float
) -> None:
    assert finding(Price, last, lowest=lowest).startswith("pass: ")


def test_a_gate_called_last_is_no_bound() -> None:
    class Gated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Linear(1, 1)

        def forward(self, outputs: Tensor) -> Tensor:
            gate: Tensor = self.gate(outputs)
            return outputs * gate.sigmoid()

    assert finding(Price, Gated).startswith("pass: ")
