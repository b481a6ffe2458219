"""Outputs that are free to move stay where the loss has a value, whichever of them are shared."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from training_core.checks.free_outputs import descend

COUNTS = torch.tensor([0.0, 3.0, 1.0, 0.0, 7.0])


def rates(outputs: Tensor) -> Tensor:
    """The loss of rates: none below 0, where they have no logarithm."""
    return F.poisson_nll_loss(outputs, COUNTS, log_input=False, reduction="none")


def test_each_rate_comes_to_its_count() -> None:
    found = descend(rates, torch.full((5,), 0.5), kind="regression")
    torch.testing.assert_close(found, COUNTS, rtol=1e-3, atol=1e-2)


def test_one_rate_for_all_comes_to_their_mean() -> None:
    start = torch.tensor(20.0)
    found = descend(lambda one: rates(one.expand(5)), start, kind="regression")
    assert float(found) == pytest.approx(2.2, rel=1e-3)


def test_rates_in_another_order_than_their_examples_are_told_from_each_other() -> None:
    order = torch.tensor([4, 2, 0, 1, 3])
    found = descend(lambda free: rates(free[order]), torch.full((5,), 0.5), kind="regression")
    torch.testing.assert_close(found[order], COUNTS, rtol=1e-3, atol=1e-2)
