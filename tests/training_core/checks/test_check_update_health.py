"""Layers that are stuck, explode or are thrown about are named; healthy networks pass."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from check_dynamics_samples import HEALTHY, Binary, Table, subject
from torch import Tensor, nn

from training_core.checks.dynamics.update_health import UpdateHealth
from training_core.checks.runner import make
from training_core.task import Preprocessor


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_tasks_pass(name: str) -> None:
    finding = make(UpdateHealth(), subject(name, checks={"input_steps": 40}))
    assert finding.verdict == "pass", finding.message
    assert any("update / weights" in row for row in finding.table)
    assert any("outputs" in row for row in finding.table)


class _Dead(Binary):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        model = Table(8)
        nn.init.constant_(model.layers[3].bias, -50.0)  # type: ignore[arg-type]
        return model


class _Saturated(nn.Module):
    """Its activation is no module, so no hook of one can see it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 32), nn.Linear(32, 1)
        nn.init.normal_(self.first.weight, std=500.0)

    def forward(self, numbers: Tensor) -> Tensor:
        hidden: Tensor = self.last(torch.tanh(self.first(numbers)))
        return hidden.squeeze(1)


class _Squeezed(Binary):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return _Saturated()


class _Exploding(Binary):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        model = Table(8, hidden=64)
        for module in model.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=1.0)
        blocks: list[Any] = [model.layers[0], nn.ReLU()]
        for _ in range(6):
            hidden = nn.Linear(64, 64)
            nn.init.normal_(hidden.weight, std=1.0)
            blocks += [hidden, nn.ReLU()]
        model.layers = nn.Sequential(*blocks, model.layers[5])
        return model


@pytest.mark.parametrize(
    ("task", "named"),
    [(_Dead(), "layers.4 (relu)"), (_Squeezed(), "(tanh)"), (_Exploding(), "grow")],
)
def test_a_dead_saturated_or_exploding_layer_fails_by_name(task: Binary, named: str) -> None:
    finding = make(UpdateHealth(), subject(task=task, checks={"input_steps": 30}))
    assert finding.verdict == "fail", finding.message
    assert named in finding.message


class _Probabilities(Binary):
    """Gives out rare probabilities: at the end of a sigmoid's range, and rightly so."""

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        model = Table(8, 16)
        nn.init.constant_(model.layers[5].bias, -9.0)  # type: ignore[arg-type]
        model.layers.append(nn.Sigmoid())
        return model

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return nn.functional.binary_cross_entropy(
            outputs, torch.zeros_like(outputs), reduction="none"
        ).mean(1)

    def predict(self, outputs: Tensor) -> Tensor:
        return outputs[:, 0]


def test_what_the_network_gives_out_is_no_stuck_layer() -> None:
    finding = make(UpdateHealth(), subject(task=_Probabilities(), checks={"input_steps": 20}))
    assert "sigmoid" not in finding.message
    assert finding.verdict != "fail", finding.message
