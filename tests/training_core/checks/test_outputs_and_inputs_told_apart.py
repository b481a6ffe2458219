"""What the loss leaves open, what is dropped behind the network, what it cannot tell apart."""

from __future__ import annotations

import pandas as pd
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from check_graph_samples import Sales, Table, find, table
from check_loss_samples import Three, Two, found
from torch import Tensor, nn

from tests.planted_bugs.bugs_outputs import OUTPUTS
from training_core.checks.graph import InputsReachOutputs, ModesDifferAsTheyShould
from training_core.checks.graph.outputs_dropped import outputs_dropped
from training_core.checks.loss.determined import loss_determines_predictions
from training_core.checks.loss.loss_function import LossFunction
from training_core.examples import Examples
from training_core.settings import CheckSettings
from training_core.tabular import TabularPreprocessor
from training_core.task import Task


class _Centred(Two):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs - outputs.mean(1, keepdim=True), target)


class _Hinge(Two):
    """Flat wherever an output is far on the right side: in places, not everywhere."""

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return (1 - outputs * (2 * target - 1)).clamp_min(0).sum(1)


class _LogProbabilities(Three):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(outputs.log_softmax(1), target, reduction="none")


class _Sigmoids(Three):
    def predict(self, outputs: Tensor) -> Tensor:
        return outputs.sigmoid()


@pytest.mark.parametrize("bug", OUTPUTS.bugs, ids=lambda bug: bug.name)
def test_bugs_of_outputs_are_found_by_the_check_that_they_name(bug: object) -> None:
    checks = CheckSettings(input_steps=10)
    findings = bug.findings(checks=checks, only_named=True)  # type: ignore[attr-defined]
    assert bug.caught(findings), [f.message for f in findings]  # type: ignore[attr-defined]


@pytest.mark.parametrize("task", [_Hinge(), _LogProbabilities(), Two(), Three()])
def test_a_loss_that_determines_its_predictions_passes(task: Task) -> None:
    finding = found(LossFunction, task)
    assert finding.verdict == "pass", finding.message


def test_a_shift_that_no_loss_sees_is_named() -> None:
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(60, 2, generator=generator)
    examples = Examples({}, (torch.rand(60, 2, generator=generator) < 0.5).float())
    assert loss_determines_predictions(Two(), outputs, examples) is None
    broken = loss_determines_predictions(_Centred(), outputs, examples)
    assert broken is not None
    assert "all outputs of an example moves no example's loss" in broken.message


def test_sigmoids_of_classes_learned_with_a_softmax_are_not_determined() -> None:
    outputs = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    examples = Examples({}, torch.arange(60) % 3)
    assert loss_determines_predictions(Three(), outputs, examples) is None
    broken = loss_determines_predictions(_Sigmoids(), outputs, examples)
    assert broken is not None


class _Narrow(nn.Module):
    """Dropout of four units before the last layer, or behind it."""

    def __init__(self, *, behind: bool) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(3, 4), nn.Linear(4, 1)
        self.behind = behind

    def forward(self, numbers: Tensor) -> Tensor:
        hidden = F.dropout(F.relu(self.into(numbers)), 0.3, self.training)
        outputs = self.out(hidden).squeeze(1)
        return F.dropout(outputs, 0.3, self.training) if self.behind else outputs


@pytest.mark.parametrize("behind", [True, False])
def test_only_what_is_dropped_behind_the_last_layer_is_found(behind: bool) -> None:
    torch.manual_seed(0)
    examples = Examples({"numbers": torch.randn(40, 3)}, torch.zeros(40))
    found = outputs_dropped(_Narrow(behind=behind), examples)
    assert bool(found) == behind
    assert all(each.value == 0 and abs(each.share - 0.3) < 0.1 for each in found)


def test_dropout_before_the_last_layer_passes() -> None:
    class Dropping(Table):
        def make_body(self) -> nn.Module:
            return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.5))

    finding = find(ModesDifferAsTheyShould, Sales(Dropping), table())
    assert finding.verdict == "pass", finding.message


class _Pair(Sales):
    """Two shops that are compared: their vectors are added, as they may be."""

    def preprocessor(self) -> TabularPreprocessor:
        return TabularPreprocessor(categories=["shop", "other"], numbers=["a", "b", "c"])


class _Summed(Table):
    def joined(self, categories: Tensor, numbers: Tensor) -> Tensor:
        return torch.cat([self.shop(categories).sum(1), numbers], 1)


@pytest.mark.parametrize("same", [True, False])
def test_columns_of_one_kind_may_be_added_and_others_may_not(same: bool) -> None:
    rows = table()
    other = rows["shop"].sample(frac=1, random_state=0).to_numpy()
    rows = rows.assign(other=other if same else pd.Series(other).str.upper().to_numpy())
    finding = find(InputsReachOutputs, _Pair(_Summed), rows)
    assert finding.verdict == ("pass" if same else "fail"), finding.message
    assert same or "cannot tell shop, other apart" in finding.message
