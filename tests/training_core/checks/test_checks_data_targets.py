"""Targets that lost on their way what the labels say are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from check_data_samples import Prices, look, table
from torch import Tensor

from training_core.checks.contract import Finding
from training_core.checks.data import InputsBeforeNetwork

Numbers = npt.NDArray[np.float64]


def _prices(target: Callable[[Numbers], Numbers], price: Callable[[Numbers], Any]) -> Finding:
    class Task(Prices):
        def target(self, frame: pd.DataFrame) -> npt.NDArray[np.float32]:
            return target(super().target(frame).astype(np.float64)).astype(np.float32)

        def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
            return super().loss(outputs, target) / 1e4

    rows = table()
    return look(InputsBeforeNetwork, Task(), rows.assign(price=price(rows["price"].to_numpy())))


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (np.trunc, "of the variance is rounded away"),
        (lambda label: -np.round(2 * label) / 2, "of the variance is rounded away"),
        (lambda label: (label * 200).astype(np.int64).astype(np.int8), "begins again every 1.28"),
    ],
)
def test_targets_cut_to_few_values_or_overflowed_are_found(
    target: Callable[[Numbers], Numbers], said: str
) -> None:
    finding = _prices(target, lambda price: (price - 5000) / 2000)
    assert finding.verdict == "fail", finding.message
    assert said in finding.message


@pytest.mark.parametrize(
    ("target", "price"),
    [
        (np.round, lambda price: price / 100),  # whole euros, a hundredth of a deviation each
        (np.round, lambda price: (price / 1000).round()),  # nothing is lost
        (lambda label: np.maximum(label, 0), lambda price: price - 5000),  # censored
        (lambda label: np.minimum(label, 6000), lambda price: price),  # capped
        (lambda label: np.log1p(np.abs(label)), lambda price: price),
        (lambda label: label > 5000, lambda price: price),  # yes or no
        (lambda label: np.searchsorted([3000, 5000, 9000], label) ** 2, lambda price: price),
        (lambda label: np.searchsorted([3000, 3500, 5000, 5200, 9000], label), lambda price: price),
    ],
)
def test_targets_that_are_rounded_finely_capped_or_grouped_are_no_fault(
    target: Callable[[Numbers], Numbers], price: Callable[[Numbers], Any]
) -> None:
    finding = _prices(target, price)
    assert finding.verdict == "pass", finding.message


def test_labels_that_are_text_are_not_looked_at() -> None:
    class Task(Prices):
        def target(self, frame: pd.DataFrame) -> npt.NDArray[np.float32]:
            return np.asarray(frame[self.label].str.len(), dtype=np.float32)

    rows = table()
    rows["price"] = [("word " * (i % 40)) for i in range(len(rows))]
    assert look(InputsBeforeNetwork, Task(), rows).verdict == "pass"
