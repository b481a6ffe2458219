"""What the loss does in a short training: healthy tasks pass, oddities are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from check_dynamics_samples import HEALTHY, Binary, binary_rows, random_rows, subject
from torch import Tensor, nn

from training_core.checks.dynamics.constant import constant_loss
from training_core.checks.dynamics.loss_falls import LossFalls
from training_core.checks.runner import make
from training_core.feeds import memory


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_tasks_pass(name: str) -> None:
    finding = make(LossFalls(), subject(name, checks={"input_steps": 60}))
    assert finding.verdict == "pass", finding.message


def test_noise_as_labels_is_warned_of_at_most() -> None:
    noise = subject(rows=random_rows(3000), batch_size=256, checks={"input_steps": 30})
    assert make(LossFalls(), noise).verdict in ("pass", "warn")


class _Climbing(Binary):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return 5 - nn.functional.mse_loss(outputs, 3 + target, reduction="none")


class _Logarithm(Binary):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return -torch.log(outputs) * target


class _Detached(Binary):
    """Scores what has no part in training, on a scale far off."""

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        shifted = outputs.detach() + 0.0 * outputs - 6 * (2 * target - 1)
        return super().loss(shifted, target)


class _Nothing(Binary):
    """A loss that is lost on the way: it falls to nothing whatever the inputs are."""

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs + 1000 * (2 * target - 1), target) + 0.0 * outputs


def test_a_loss_that_is_not_finite_fails() -> None:
    finding = make(LossFalls(), subject(task=_Logarithm(), checks={"input_steps": 30}))
    assert finding.verdict == "fail"
    assert "nan" in finding.message


def test_a_loss_that_does_not_fall_and_is_above_the_best_constant_fails() -> None:
    stuck = subject(optimiser={"lr": 1e-9}, checks={"input_steps": 20}, rows=_offset_rows())
    finding = make(LossFalls(), stuck)
    assert finding.verdict == "fail", finding.message
    assert "does not fall" in finding.message


def _offset_rows() -> Any:
    """Nine of ten labels are 1, which an untrained network does not know."""
    frame = binary_rows(600)
    return frame.assign(y=(np.arange(600) % 10 > 0).astype("float64"))


@pytest.mark.parametrize("order", ["the same each time", "as the rows lie, sorted by label"])
def test_rows_in_an_order_that_the_loss_follows_fail(
    order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def repeated(*, seed: int, epoch: int, count: int) -> Tensor:
        if order.startswith("as"):
            return torch.arange(count)
        return torch.randperm(count, generator=torch.Generator().manual_seed(seed))

    rows = binary_rows(800, flipped=0.2).sort_values("y") if order.startswith("as") else None
    monkeypatch.setattr(memory, "permutation", repeated)
    finding = make(LossFalls(), subject(rows=rows, checks={"input_steps": 60}))
    assert finding.verdict == "fail", finding.message
    assert "repeats with the epoch" in finding.message
    assert finding.curves


def test_rows_that_are_cut_into_batches_before_they_are_mixed_fail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def blocks(*, seed: int, epoch: int, count: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed + 7 * epoch)
        starts = torch.randperm(count // 32, generator=generator) * 32
        return (starts[:, None] + torch.arange(32)).flatten()

    sorted_rows = binary_rows(1600, flipped=0.2).sort_values(["y", "x0"])
    monkeypatch.setattr(memory, "permutation", blocks)
    finding = make(LossFalls(), subject(rows=sorted_rows, checks={"input_steps": 60}))
    assert finding.verdict == "fail", finding.message
    assert "mixed" in finding.message


def test_a_leak_is_warned_of_as_too_good() -> None:
    frame = binary_rows(800)
    leaked = frame.assign(x0=20 * frame["y"] - 10)
    finding = make(LossFalls(), subject(rows=leaked, checks={"input_steps": 200}))
    assert finding.verdict == "warn"
    assert "nothing is left to learn" in finding.message


@pytest.mark.parametrize(
    ("name", "expected"), [("binary", 0.693), ("price", 0.978), ("images", 1.099), ("text", 2.485)]
)
def test_the_best_constant_is_the_prior_of_any_kind_of_task(name: str, expected: float) -> None:
    made = subject(name)
    assert constant_loss(made, made.examples) == pytest.approx(expected, rel=0.02)
