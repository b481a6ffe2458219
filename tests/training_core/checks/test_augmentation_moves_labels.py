"""Labels that an augmentation leaves, though the answers of who knows raw examples change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from training_core.checks.data.harm import Harm
from training_core.checks.data.raw_and_augmented import answers_moved
from training_core.checks.data.unlearnable import plain_training
from training_core.checks.subject import Subject
from training_core.settings import CheckSettings, TrainingSettings
from training_core.tabular import TabularPreprocessor
from training_core.task import (
    PADDING,
    BinaryTask,
    MulticlassTask,
    Preprocessor,
    SequenceTask,
    Task,
)

Augmented = tuple[dict[str, Tensor], Tensor]
Augment = Callable[[dict[str, Tensor], Tensor, torch.Generator], Augmented]
NAMES = ["a", "b", "c", "d"]


def _rows(count: int = 800) -> pd.DataFrame:
    """Four numbers, none of them near 0, and what the signs of the first ones say."""
    random = np.random.default_rng(0)
    signs = random.choice([-1, 1], (count, 4))
    frame = pd.DataFrame(signs * random.uniform(0.5, 1.5, (count, 4)), columns=NAMES)
    first, second = (signs[:, i] > 0 for i in range(2))
    return frame.assign(up=first.astype(float), quarter=2 * first + second, signs=0)


class _Network(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.inputs = inputs
        self.layers = nn.Sequential(nn.Linear(inputs, 32), nn.ReLU(), nn.Linear(32, outputs))

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        each = numbers if self.inputs > 1 else numbers.unsqueeze(2)
        outputs: Tensor = self.layers(each)
        return outputs if outputs.shape[-1] > 1 else outputs.squeeze(1)


class _Table:
    inputs, outputs = 4, 1

    def preprocessor(self) -> TabularPreprocessor:
        return TabularPreprocessor(categories=[], numbers=NAMES)

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return _Network(self.inputs, self.outputs)


class Up(_Table, BinaryTask):
    label = "up"


class Quarter(_Table, MulticlassTask):
    label = "quarter"
    classes = range(4)
    outputs = 4


class Signs(_Table, SequenceTask):
    """The sign of each number by itself; the last one counts for nothing in half the rows."""

    label = "signs"
    inputs, outputs = 1, 2

    def target(self, frame: pd.DataFrame) -> npt.NDArray[np.int64]:
        target = (frame[NAMES].to_numpy() > 0).astype(np.int64)
        target[::2, -1] = PADDING
        return target


def _turned(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
    chosen = torch.rand((len(target), 1), generator=generator) < 0.5
    numbers = arrays["numbers"]
    return {**arrays, "numbers": torch.where(chosen, -numbers, numbers)}, target


def _noisy(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
    noise = 0.8 * torch.randn(arrays["numbers"].shape, generator=generator)
    return {**arrays, "numbers": arrays["numbers"] + noise}, target


def _both(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
    most = 3 if int(target.max()) > 1 else 1
    changed = torch.where(target == PADDING, target, most - target)
    return {**arrays, "numbers": -arrays["numbers"]}, changed


def _found(kind: type[Task], augmentation: Augment, *, rate: float = 0.01) -> Harm | None:
    def augment(self: Any, *given: Any) -> Augmented:
        return augmentation(*given)

    changed = type("Changed", (kind,), {"augment": augment})
    subject = Subject(
        changed(),
        _rows(),
        training=TrainingSettings(batch_size=32, device="cpu", optimiser={"lr": rate}),
        settings=CheckSettings(input_steps=150),
    )
    return answers_moved(subject, lambda: plain_training(subject))


@pytest.mark.parametrize("kind", [Up, Quarter, Signs])
def test_inputs_that_are_turned_while_the_labels_stay_are_found(kind: type[Task]) -> None:
    harm = _found(kind, _turned)
    assert harm is not None
    assert harm.broken
    assert ("positions" if kind is Signs else "examples") in harm.said


@pytest.mark.parametrize("kind", [Up, Quarter, Signs])
@pytest.mark.parametrize("augmentation", [_noisy, _both])
def test_noise_and_labels_that_turn_with_their_inputs_are_not(
    kind: type[Task], augmentation: Augment
) -> None:
    assert _found(kind, augmentation) is None


def test_who_knows_nothing_yet_is_not_asked() -> None:
    assert _found(Quarter, _turned, rate=1e-6) is None
