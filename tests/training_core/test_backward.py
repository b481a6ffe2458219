"""Backward of per-example losses is torch's own, and its own fallback."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from training_core import backward as module
from training_core.backward import backward


def _losses(model: nn.Module) -> Tensor:
    inputs = torch.linspace(-1, 1, 12).reshape(6, 2)
    outputs: Tensor = model(inputs)
    return outputs.square().sum(1)


def _gradients(model: nn.Module) -> list[Tensor]:
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize("private", [True, False])
def test_gradients_are_those_of_the_weighted_sum_and_add_up(
    private: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert module._run is not None, "torch has moved it: measure what the fallback costs"
    if not private:
        monkeypatch.setattr(module, "_run", None)
    torch.manual_seed(0)
    model, shares = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2)), torch.rand(6)
    for _ in range(2):
        (_losses(model) * shares).sum().backward()  # type: ignore[no-untyped-call]
    expected = _gradients(model)
    model.zero_grad()
    for _ in range(2):
        backward(_losses(model), shares)
    for one, other in zip(expected, _gradients(model), strict=True):
        assert torch.allclose(one, other, rtol=1e-6)


def test_losses_that_depend_on_no_weight_are_an_error_as_in_torch() -> None:
    with pytest.raises(RuntimeError, match="does not require grad"):
        backward(torch.ones(3), torch.ones(3))
