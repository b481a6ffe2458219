from __future__ import annotations

from typing import Any

import pytest
import torch
from check_graph_samples import Normalised, Sales, Table, find, table
from torch import Tensor, nn

from training_core import evaluation
from training_core.checks.graph import ModesDifferAsTheyShould


class AlwaysDropping(Table):
    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        hidden = self.body(self.joined(categories, numbers))
        return self.head(nn.functional.dropout(hidden, 0.2)).squeeze(1)


class NeverDropping(Normalised):
    """Calls dropout and goes on with what was there before."""

    def make_body(self) -> nn.Module:
        return nn.Sequential(nn.Linear(6, 16), nn.ReLU())

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.5)

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        hidden = self.body(self.joined(categories, numbers))
        self.dropout(hidden)
        return self.head(hidden).squeeze(1)


class CentredInTraining(Table):
    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        if self.training:
            numbers = (numbers - 1) / 2
        return super().forward(categories, numbers)


class InPlace(Table):
    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        numbers *= 0.5
        return super().forward(categories, numbers)


class NeverEvaluates(Normalised):
    """Its own train() forgets to hand the mode on."""

    def train(self, mode: bool = True) -> NeverEvaluates:
        return super().train(True)


class NeverTrains(Normalised):
    def train(self, mode: bool = True) -> NeverTrains:
        return super().train(False)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (AlwaysDropping, "in eval mode two calls differ"),
        (NeverDropping, "in spite of dropout: dropout"),
        (CentredInTraining, "outputs of train and eval mode are"),
        (InPlace, "changes its inputs in place in train mode: numbers"),
        (NeverEvaluates, "after eval() in train mode"),
        (NeverTrains, "after train() in eval mode: body.3 (Dropout), body.1 (BatchNorm1d)"),
    ],
)
def test_a_mode_that_is_not_kept_fails_by_name(build: Any, said: str) -> None:
    finding = find(ModesDifferAsTheyShould, Sales(build), table())
    assert finding.verdict == "fail", finding.message
    assert said in finding.message


class FixedStatistics(Normalised):
    """BatchNorm with loaded statistics that stay: eval mode in training, on purpose."""

    def __init__(self) -> None:
        super().__init__()
        self.body[1].running_mean.fill_(0.1)

    def train(self, mode: bool = True) -> FixedStatistics:
        super().train(mode)
        self.body[1].eval()
        return self


class Noisy(Table):
    """Draws by itself, in train mode only."""

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        if self.training:
            numbers = numbers + 0.1 * torch.randn_like(numbers)
        return super().forward(categories, numbers)


@pytest.mark.parametrize(
    ("build", "verdict"), [(Normalised, "pass"), (Noisy, "pass"), (FixedStatistics, "warn")]
)
def test_modes_that_differ_as_meant_do_not_fail(build: Any, verdict: str) -> None:
    finding = find(ModesDifferAsTheyShould, Sales(build), table())
    assert finding.verdict == verdict, finding.message


def test_an_evaluation_that_forgets_eval_mode_or_train_mode_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = evaluation.evaluate

    def in_train_mode(task: Any, model: nn.Module, examples: Any, **more: Any) -> Any:
        outputs = model(**examples.arrays)
        return {"loss": float(task.loss(outputs, examples.target).detach().mean())}

    monkeypatch.setattr(evaluation, "evaluate", in_train_mode)
    finding = find(ModesDifferAsTheyShould, Sales(Normalised), table())
    assert finding.verdict == "fail"
    assert "evaluate calls in train mode" in finding.message
    assert "body.1.running_mean" in finding.message

    def never_restored(task: Any, model: nn.Module, examples: Any, **more: Any) -> Any:
        return whole(task, model.eval(), examples, **more)

    monkeypatch.setattr(evaluation, "evaluate", never_restored)
    finding = find(ModesDifferAsTheyShould, Sales(Normalised), table())
    assert finding.verdict == "fail"
    assert "evaluate changes the mode" in finding.message


class DropsWhatToKeep(Normalised):
    def make_body(self) -> nn.Module:
        return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.9))


def test_a_dropout_of_nearly_all_fails() -> None:
    finding = find(ModesDifferAsTheyShould, Sales(DropsWhatToKeep), table())
    assert finding.verdict == "fail"
    assert "dropout takes away 90%: body.2 (Dropout)" in finding.message


class EditsTargets(Sales):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs, target.clamp_(0.1, 0.9))


def test_a_loss_that_writes_to_the_target_fails() -> None:
    finding = find(ModesDifferAsTheyShould, EditsTargets(Table), table())
    assert finding.verdict == "fail"
    assert "examples in place: target" in finding.message
