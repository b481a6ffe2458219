"""Units that count other positions than the loss does are found; weights are no fault."""

from __future__ import annotations

import torch.nn.functional as F  # noqa: N812 (the field's name for it)
from check_loss_samples import Words, found
from torch import Tensor

from training_core.checks.loss.loss_function import LossFunction
from training_core.task import PADDING


class _UnitsInFours(Words):
    """Sequences are cut into pieces of four, and the last one counts as whole."""

    def units(self, target: Tensor) -> Tensor:
        return 4 * ((target != PADDING).sum(1) / 4).ceil()


class _Weighted(Words):
    """Even tokens weigh twice as much, in loss and units."""

    def _weights(self, target: Tensor) -> Tensor:
        return (1.0 + (target % 2 == 0)) * (target != PADDING)

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        losses = F.cross_entropy(
            outputs.flatten(0, 1), target.flatten(), reduction="none", ignore_index=PADDING
        )
        return (losses.view(target.shape) * self._weights(target)).sum(1)

    def units(self, target: Tensor) -> Tensor:
        return self._weights(target).sum(1)


def test_units_that_count_padding_are_found() -> None:
    finding = found(LossFunction, _UnitsInFours())
    assert finding.verdict == "fail"
    assert "units is no count of the positions" in finding.message


def test_units_may_be_weights() -> None:
    finding = found(LossFunction, _Weighted())
    assert finding.verdict == "pass", finding.message
