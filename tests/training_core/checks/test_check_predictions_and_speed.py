"""Predictions over a short training, the speed of steps, and simple models beside the network."""

from __future__ import annotations

import time

import pytest
import torch
from check_dynamics_samples import HEALTHY, Binary, Table, binary_rows, price_rows, subject
from torch import Tensor, nn

from training_core.checks import dynamics
from training_core.checks.dynamics.batch_size_and_speed import BatchSizeAndSpeed
from training_core.checks.dynamics.prediction_dynamics import PredictionDynamics
from training_core.checks.dynamics.simple_model_ahead import SimpleModelAhead
from training_core.checks.runner import make
from training_core.task import Preprocessor

FEW = {"input_steps": 40}


@pytest.mark.parametrize("name", HEALTHY)
def test_predictions_of_healthy_tasks_are_pictured_and_pass(name: str) -> None:
    finding = make(PredictionDynamics(), subject(name, checks=FEW))
    assert finding.verdict == "pass", finding.message
    assert finding.heat is not None
    assert len(finding.heat.values) == len(finding.heat.rows) == 32
    assert all(len(row) == len(finding.heat.columns) == 12 for row in finding.heat.values)


class _Blind(nn.Module):
    """Its inputs do not reach its output."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Table(8)

    def forward(self, numbers: Tensor) -> Tensor:
        outputs: Tensor = self.inner(numbers * 0.0)
        return outputs


class _Unreached(Binary):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return _Blind()


class _Still(Binary):
    """The gradient is cut off."""

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs.detach() + 0.0 * outputs, target)


def test_predictions_that_are_the_same_for_all_rows_fail() -> None:
    finding = make(PredictionDynamics(), subject(task=_Unreached(), checks=FEW))
    assert finding.verdict == "fail"
    assert "all rows get the same prediction" in finding.message


def test_predictions_that_never_move_fail() -> None:
    finding = make(PredictionDynamics(), subject(task=_Still(), checks=FEW))
    assert finding.verdict == "fail"
    assert "nothing that is trained reaches them" in finding.message


class _SlowAugmentation(Binary):
    def augment(
        self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> tuple[dict[str, Tensor], Tensor]:
        time.sleep(0.03)
        return arrays, target


def test_speed_is_measured_by_batch_size_and_never_fails() -> None:
    finding = make(BatchSizeAndSpeed(), subject("images"))
    sizes = [row["batch size"] for row in finding.table]
    assert sizes == [8, 16, 32, 64, 128]
    assert finding.measured is not None
    assert finding.measured > 0
    assert all(float(row["examples a second"]) > 0 for row in finding.table)


def test_a_plan_that_does_not_fit_its_limits_is_warned_of() -> None:
    hours = make(BatchSizeAndSpeed(), subject(epochs=200, checks={"hours": 1e-9}))
    assert hours.verdict == "warn"
    assert "checks.hours" in hours.message
    money = {"budget": 1e-9, "price_per_hour": 2.0}
    budget = make(BatchSizeAndSpeed(), subject(stopping=money))
    assert budget.verdict == "warn"
    assert "training.stopping.budget" in budget.message


def test_an_augmentation_that_takes_most_of_a_step_is_warned_of() -> None:
    finding = make(BatchSizeAndSpeed(), subject(task=_SlowAugmentation(), epochs=2000))
    assert finding.verdict == "warn"
    assert "augmentation" in finding.advice


def test_a_sample_that_ends_in_a_batch_of_one_row_can_be_measured() -> None:
    made = subject("images", batch_size=239)  # 240 train rows
    assert "could not be made" not in make(BatchSizeAndSpeed(), made).message


class _Spoiled(Binary):
    """Everything but the sign of one input is lost inside the network."""

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return _Rounded()


class _Rounded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Table(8)

    def forward(self, numbers: Tensor) -> Tensor:
        outputs: Tensor = self.inner((numbers / 100).round() + 0.0 * numbers)
        return outputs


def test_a_network_that_learns_less_than_half_of_a_linear_model_as_planned_is_broken() -> None:
    finding = make(SimpleModelAhead(), subject(task=_Spoiled(), rows=binary_rows(1200)))
    assert finding.verdict == "fail", finding.message
    assert "logistic regression" in finding.message
    assert "planned steps" in finding.message


def test_where_the_plan_takes_too_long_a_simple_model_ahead_is_a_warning() -> None:
    long = subject(task=_Spoiled(), rows=binary_rows(1200), epochs=100_000)
    finding = make(SimpleModelAhead(), long)
    assert finding.verdict == "warn", finding.message
    assert "short training" in finding.message


class _Weighed(Binary):
    """Positives count a hundred times, so that predictions are no shares by intention."""

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs, target) * (1 + 99 * target)


def test_predictions_that_a_weighted_loss_bends_are_not_behind() -> None:
    finding = make(SimpleModelAhead(), subject(task=_Weighed(), rows=binary_rows(1200)))
    assert finding.verdict == "pass", finding.message


@pytest.mark.parametrize("name", ["binary", "price", "tags", "images"])
def test_healthy_networks_are_not_behind_simple_models(name: str) -> None:
    finding = make(SimpleModelAhead(), subject(name))
    assert finding.verdict == "pass", finding.message
    assert finding.table[0]["model"] == "the network"


def test_sequences_have_no_simple_model() -> None:
    assert make(SimpleModelAhead(), subject("text")).verdict == "not_applicable"


def test_no_check_leaves_a_trace_in_the_examples() -> None:
    made = subject("price", rows=price_rows(300), checks=FEW)
    before = made.examples.clone()
    for check in dynamics.CHECKS:
        make(check(), made)
    assert torch.equal(before.target, made.examples.target)
    assert torch.equal(before.arrays["numbers"], made.examples.arrays["numbers"])
