"""What happens between steps: when it is told, what is evaluated, and that it goes on exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from training_samples import largest_difference, trainer, weights

from training_core import loop
from training_core.loop import Trainer
from training_core.techniques.contract import Technique, Techniques


class Remembering(Technique):
    """Adds up the head's bias of each step, and is evaluated with a bias of 0."""

    name = "remembering"

    def __init__(self, trainer: Trainer) -> None:
        self.bias: Tensor = trainer.module.head.bias  # type: ignore[assignment, union-attr]
        self.sum = torch.zeros(1, dtype=torch.float64)
        self.told: list[tuple[str, int]] = []
        self.evaluated: list[float] = []

    def before_step(self, step: int) -> None:
        self.told.append(("before", step))

    def after_update(self, step: int) -> None:
        self.told.append(("after", step))
        self.sum += self.bias.detach()

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        kept = self.bias.detach().clone()
        with torch.no_grad():
            self.bias.zero_()
            yield
            self.evaluated.append(self.bias.item())
            self.bias.copy_(kept)

    def state_dict(self) -> dict[str, Tensor]:
        return {"sum": self.sum}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.sum.copy_(state["sum"])


@pytest.fixture(autouse=True)
def _asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "techniques_of", lambda trainer: Techniques([Remembering(trainer)]))


def remembering(run: Trainer) -> Remembering:
    (found,) = run.techniques
    assert isinstance(found, Remembering)
    return found


def test_it_is_told_before_and_after_each_step(tmp_path: Path) -> None:
    run = trainer(tmp_path)
    run.fit()
    steps = range(run.total_steps)
    assert remembering(run).told == [
        told for step in steps for told in (("before", step), ("after", step + 1))
    ]


def test_what_it_puts_in_place_is_evaluated_and_not_trained(tmp_path: Path) -> None:
    run = trainer(tmp_path)
    run.fit()
    assert remembering(run).evaluated == [0.0] * len(run.outcome.evaluations)
    assert remembering(run).bias.item() != 0.0


@pytest.mark.parametrize("stop", [4, 6])  # at an evaluation, and between two
def test_it_goes_on_as_if_nothing_had_happened(tmp_path: Path, stop: int) -> None:
    whole = trainer(tmp_path / "whole")
    whole.fit()
    first = trainer(tmp_path / "run")
    first.should_stop = lambda: first.outcome.steps == stop
    first.fit()
    second = trainer(tmp_path / "run")
    assert second.fit().resumed_from == stop
    assert torch.equal(remembering(second).sum, remembering(whole).sum)
    assert largest_difference(weights(whole.model), weights(second.model)) == 0.0
    assert second.outcome.evaluations == whole.outcome.evaluations


def test_several_are_kept_apart_by_their_names() -> None:
    class Named(Technique):
        def __init__(self, name: str, value: float) -> None:
            self.name, self.value = name, torch.tensor(value)  # type: ignore[misc]

        def state_dict(self) -> dict[str, Tensor]:
            return {"value": self.value}

        def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
            self.value = state["value"]

    saved = Techniques([Named("a", 1.0), Named("b", 2.0)]).state_dict()
    again: Any = Techniques([Named("b", 0.0), Named("a", 0.0)])
    again.load_state_dict(saved)
    assert [float(each.value) for each in again] == [2.0, 1.0]
